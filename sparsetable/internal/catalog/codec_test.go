package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"testing"

	"aibox/internal/errkind"
)

func examples() []*kept {
	return []*kept{
		{Snapshot: Snapshot{ID: 1}},
		{
			Snapshot: Snapshot{
				ID: 1 << 40, Slots: math.MaxUint32, Rows: 1 << 50, PageBytes: 5,
				Files: []File{{ID: math.MaxUint32, Dir: math.MaxUint16, Bytes: 1 << 40, LiveBytes: -1, Incarnation: math.MaxUint64}, {}},
				Deltas: []Delta{
					{Dir: 3, Name: "delta", Bytes: 2, Rows: 1},
					{Name: "next", Bytes: 9, Rows: 8, Snapshot: 1 << 40, DirtyBytes: 7, DirtyRows: 6, Seq: math.MaxUint64, Growing: []FileEnd{{5, 1 << 40}, {}}},
				},
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

// TestSnapshotVersions checks that records of version 1, whose files had no incarnation, can be
// read, and that records of future versions are refused.
func TestSnapshotVersions(t *testing.T) {
	b := []byte{
		1,          // version
		7, 4, 6, 8, // id, slots, rows, page bytes
		2, 3, 1, 10, 12, 4, 0, 14, 16, // files
		1, 0, 1, 'd', 18, 20, // deltas
		1, 1, 'c', 22, // counters
		1, 'r', // record
		1, 2, // versions
	}
	want := &kept{
		Snapshot: Snapshot{
			ID: 7, Slots: 4, Rows: 3, PageBytes: 4,
			Files:    []File{{ID: 3, Dir: 1, Bytes: 5, LiveBytes: 6}, {ID: 4, Bytes: 7, LiveBytes: 8}},
			Deltas:   []Delta{{Name: "d", Bytes: 9, Rows: 10}},
			Counters: map[string]int64{"c": 11},
			Record:   []byte("r"),
		},
		versions: []uint64{5},
	}
	sealed := func(b []byte) []byte {
		return binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))
	}
	got, err := decodeSnapshot(sealed(b))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("version 1 is read as %+v, want %+v: %v", got, want, err)
	}
	if got, err = decodeSnapshot(encodeSnapshot(got)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("written again it is read as %+v, want %+v: %v", got, want, err)
	}
	for version, want := range map[byte]error{0: errRecord, recordVersion + 1: errkind.ErrNewer} {
		b[0] = version
		if _, err := decodeSnapshot(sealed(b)); !errors.Is(err, want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// FuzzDecodeSnapshot adds the checksum to each input, since it would reject nearly all inputs
// otherwise.
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
