package catalog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"reflect"
	"testing"
)

func examples() []*kept {
	return []*kept{
		{Snapshot: Snapshot{ID: 1}},
		{
			Snapshot: Snapshot{
				ID: 1 << 40, Slots: math.MaxUint32, Rows: 1 << 50, PageBytes: 5,
				Files:    []File{{ID: math.MaxUint32, Dir: math.MaxUint16, Bytes: 1 << 40, LiveBytes: -1}, {}},
				Deltas:   []Delta{{Dir: 3, Name: "delta", Bytes: 2, Rows: 1}},
				Counters: map[string]int64{"": 0, "x": math.MinInt64, "y": math.MaxInt64},
				Record:   []byte("record"),
			},
			versions: []uint64{1 << 40, 1, 0, 1<<40 - 1},
		},
	}
}

func TestSnapshotCodec(t *testing.T) {
	for _, s := range examples() {
		b := encodeSnapshot(s)
		got, err := decodeSnapshot(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) && len(s.Record) > 0 {
			t.Errorf("%+v comes back as %+v", s, got)
		}
		for i := range b {
			d := bytes.Clone(b)
			d[i] ^= 1
			if _, err := decodeSnapshot(d); err == nil {
				t.Errorf("byte %d flipped: not noticed", i)
			}
			// Cut off with a checksum that holds: the decoder has to notice.
			d = binary.LittleEndian.AppendUint32(bytes.Clone(b[:i]), crc32.Checksum(b[:i], castagnoli))
			if _, err := decodeSnapshot(d); err == nil && i != len(b)-4 {
				t.Errorf("cut at %d: not noticed", i)
			}
		}
	}
}

// FuzzDecodeSnapshot takes the input without its checksum, which would keep the
// fuzzer out.
func FuzzDecodeSnapshot(f *testing.F) {
	for _, s := range examples() {
		b := encodeSnapshot(s)
		f.Add(b[:len(b)-4])
	}
	f.Add([]byte{recordVersion, 1, 1, 0, 0, 255, 255, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSnapshot(binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli)))
		if err != nil {
			return
		}
		again, err := decodeSnapshot(encodeSnapshot(s))
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v becomes %+v, %v", s, again, err)
		}
	})
}
