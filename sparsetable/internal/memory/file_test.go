package memory

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"aibox/internal/errkind"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
)

// bytesFile is a File in memory, for reading.
type bytesFile struct{ *bytes.Reader }

func (bytesFile) Write([]byte) (int, error) { return 0, errors.New("read only") }
func (bytesFile) Sync() error               { return nil }
func (bytesFile) Close() error              { return nil }
func (f bytesFile) Size() (int64, error)    { return f.Reader.Size(), nil }

// encodeSnapshot writes rows 0, 10, 20, … whose words all hold the row's number.
func encodeSnapshot(tb testing.TB, l layout.Layout, id uint64, record []byte, rows int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := newSnapshotWriter(&b, l, id, record)
	if err != nil {
		tb.Fatal(err)
	}
	row := make([]float32, l.Words())
	for i := range rows {
		for j := range row {
			row[j] = float32(i + 1)
		}
		w.add(uint64(i)*10, row)
		if w.full() {
			if err := w.flush(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.finish(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func decodeSnapshot(data []byte, id uint64) (info contract.SnapshotInfo, keys []uint64, err error) {
	r, err := newSnapshotReader(bytesFile{bytes.NewReader(data)}, "test.rows", id)
	if err != nil {
		return info, nil, err
	}
	for {
		key, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.info, keys, nil
		}
		if err != nil {
			return r.info, keys, err
		}
		keys = append(keys, key)
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	for _, l := range []layout.Layout{
		{ValueDim: 1}, {ValueDim: 3, StateDim: 5}, {ValueDim: 1<<16 - 4},
		{ValueDim: 3, StateDim: 5, Format: layout.Float16}, {ValueDim: 2 * (1<<16 - 4), Format: layout.BFloat16},
	} {
		n := blockRows(l)
		for _, rows := range []int{0, 1, n - 1, n, n + 1, 3 * n} {
			data := encodeSnapshot(t, l, 9, []byte("record"), rows)
			info, keys, err := decodeSnapshot(data, 9)
			if err != nil {
				t.Fatalf("%+v, %d rows: %v", l, rows, err)
			}
			if info.Rows != int64(rows) || len(keys) != rows || info.Layout != l || string(info.Record) != "record" || info.Bytes != int64(len(data)) {
				t.Errorf("%+v, %d rows: %+v, %d keys", l, rows, info, len(keys))
			}
		}
	}
}

// TestSnapshotBytes checks the bytes of the format that doc.go describes.
func TestSnapshotBytes(t *testing.T) {
	got := encodeSnapshot(t, layout.Layout{ValueDim: 1}, 2, []byte{0xaa}, 1)
	want := []byte("aiboxrow" + "\x01\x00\x00\x00" + "\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x01\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\xaa")
	want = appendCRC(want)
	block := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for range 5 {
		block = append(block, 0, 0, 0x80, 0x3f) // 1.0
	}
	want = append(want, appendCRC(block)...)
	want = append(want, appendCRC([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})...)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}

	// 16-bit values: version 2, and the format beside the number of values.
	got = encodeSnapshot(t, layout.Layout{ValueDim: 3, StateDim: 1, Format: layout.BFloat16}, 2, nil, 0)
	want = appendCRC([]byte("aiboxrow" + "\x02\x00\x00\x00" + "\x03\x00\x00\x02" + "\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00"))
	want = append(want, appendCRC(make([]byte, 12))...)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// TestSnapshotOfANewerVersion checks that a snapshot of a newer version is not reported as damaged,
// whatever follows its version.
func TestSnapshotOfANewerVersion(t *testing.T) {
	data := encodeSnapshot(t, layout.Layout{ValueDim: 3}, 1, nil, 2)
	head := bytes.Clone(data[:headerBytes])
	head[8], head[15] = version16+1, 0xff
	newer := append(appendCRC(head), data[headerBytes+crcBytes:]...)
	if _, _, err := decodeSnapshot(newer, 1); !errors.Is(err, errkind.ErrNewer) || errors.As(err, new(*contract.CorruptionError)) {
		t.Error(err)
	}
}

// TestSnapshotVersionGoesWithTheFormat checks that a header whose version does not fit its value
// format is refused.
func TestSnapshotVersionGoesWithTheFormat(t *testing.T) {
	for _, l := range []layout.Layout{{ValueDim: 3}, {ValueDim: 3, Format: layout.Float16}} {
		data := encodeSnapshot(t, l, 1, nil, 2)
		for at, b := range map[int]byte{8: 3 - data[8], 15: 3, 16: 0xff} { // the other version, a format that nobody knows, a huge state
			wrong := bytes.Clone(data[:headerBytes])
			wrong[at] = b
			if at == 16 {
				copy(wrong[16:], "\xff\xff\xff\xff")
			}
			wrong = append(appendCRC(wrong), data[headerBytes+crcBytes:]...)
			var c *contract.CorruptionError
			if _, _, err := decodeSnapshot(wrong, 1); !errors.As(err, &c) {
				t.Errorf("%v, byte %d is %d: %v", l, at, b, err)
			}
		}
	}
}

func TestSnapshotReaderRejectsWrongOrder(t *testing.T) {
	var b bytes.Buffer
	w, err := newSnapshotWriter(&b, layout.Layout{ValueDim: 1}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.add(5, []float32{1, 1, 1, 1, 1})
	w.add(5, []float32{1, 1, 1, 1, 1})
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	var c *contract.CorruptionError
	if _, _, err := decodeSnapshot(b.Bytes(), 1); !errors.As(err, &c) {
		t.Errorf("a snapshot that has a key twice: %v", err)
	}
	if _, _, err := decodeSnapshot(encodeSnapshot(t, layout.Layout{ValueDim: 1}, 1, nil, 3), 2); !errors.As(err, &c) {
		t.Errorf("a snapshot under another name: %v", err)
	}
}

// FuzzSnapshotReader checks that no input causes a panic, and that only bytes that the writer would
// have written are accepted.
func FuzzSnapshotReader(f *testing.F) {
	good := encodeSnapshot(f, layout.Layout{ValueDim: 2, StateDim: 1}, 1, []byte("record"), 5)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(encodeSnapshot(f, layout.Layout{ValueDim: 60000}, 1, nil, 2))
	f.Add(encodeSnapshot(f, layout.Layout{ValueDim: 5, StateDim: 1, Format: layout.Float16}, 1, nil, 3))
	f.Add([]byte(layout.Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, keys, err := decodeSnapshot(data, 1)
		if err != nil {
			return
		}
		if int64(len(keys)) != info.Rows || info.Bytes != int64(len(data)) {
			t.Errorf("%d keys in %d bytes: %+v", len(keys), len(data), info)
		}
		for i := 1; i < len(keys); i++ {
			if keys[i-1] >= keys[i] {
				t.Errorf("key %d before key %d", keys[i-1], keys[i])
			}
		}
	})
}
