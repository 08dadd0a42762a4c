package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Direct reads of any range return what is in the file.
func TestDirectReads(t *testing.T) {
	name := filepath.Join(t.TempDir(), "000001.sst")
	want := make([]byte, 3*directUnit+1234)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(r.Uint32())
	}
	if err := os.WriteFile(name, want, 0o666); err != nil {
		t.Fatal(err)
	}
	d := &directFS{FS: vfs.Default}
	f, err := d.Open(name, vfs.RandomReadsOption)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 500 {
		from := r.IntN(len(want))
		got := make([]byte, 1+r.IntN(len(want)-from))
		if n, err := f.ReadAt(got, int64(from)); err != nil || n != len(got) || !bytes.Equal(got, want[from:from+n]) {
			t.Fatalf("%d bytes at %d: %d read, %v", len(got), from, n, err)
		}
	}
	if _, err := f.ReadAt(make([]byte, 10), int64(len(want)-5)); err == nil {
		t.Error("a read past the end succeeded")
	}
	if d.reads.Load() != 501 && !d.buffered.Load() {
		t.Errorf("%d direct reads counted, want 501", d.reads.Load())
	}
	if s, err := d.Open(name, vfs.SequentialReadsOption); err != nil {
		t.Error(err)
	} else {
		if _, direct := s.(*directFile); direct {
			t.Error("sequential reads are direct")
		}
		s.Close()
	}
}
