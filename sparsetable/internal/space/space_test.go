package space

import (
	"errors"
	"testing"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
)

// A directory without a budget counts as nearly full, so that files are emptied, while there is
// still room for the buckets of one of its files. That also holds if files are larger than usual
// because the directory is large.
func TestRoomToEmptyLargeFiles(t *testing.T) {
	const buffer, usual, words = 8 << 10, 16 << 10, 900
	dev := blocktest.New(blocktest.Options{Dir: "dir"})
	files, err := bucketfile.Open(t.Context(), bucketfile.State{}, nil, bucketfile.Options{
		Table: 1, RowWords: words, Devices: []blockio.Device{dev}, BufferBytes: buffer, FileBytes: usual, ReserveBytes: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for slot := uint32(0); files.LiveBytes() < 1024*usual; slot++ {
		a, err := files.Begin(slot, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		a.Put(uint64(slot), make([]float32, words))
		loc, err := a.Commit()
		if err == nil && slot%2 == 0 {
			err = files.Release(loc) // so that there are files to be emptied
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, _ := files.Space()
	newest := int64(0)
	for _, f := range files.LiveFiles() {
		newest = max(newest, f.Bytes)
	}
	if newest < 2*usual {
		t.Fatalf("the largest file has %d bytes, and usual ones %d", newest, usual)
	}
	p := Policy{Files: files, Devices: []blockio.Device{dev}, MaxAmplification: 100, BufferBytes: buffer, MinFileBytes: usual}
	for _, c := range []struct {
		left   int64
		crowds bool
	}{{newest, true}, {FullFiles * newest * 7 / 8, true}, {2 * FullFiles * newest, false}} {
		dev.SetCapacity(all.TotalBytes + ReservedBytes + c.left)
		if f, ok := p.Worst(buffer); ok != c.crowds {
			t.Errorf("where %d bytes are left to files of %d bytes: file %d is to be emptied: %v", c.left, newest, f.File, ok)
		}
	}
	if err := errors.Join(files.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
}
