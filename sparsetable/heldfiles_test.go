package sparsetable_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// heldSnapshot is a held snapshot of a table that is trained further, with the rows that it had
// when it was taken.
type heldSnapshot struct {
	id    uint64
	files *sparsetable.SnapshotFiles
	rows  map[uint64]float32
	bytes map[string][]byte // of each file
	index []string          // its files; nil: it has not been written
}

func readHeld(t *testing.T, f *sparsetable.PortableFile) []byte {
	t.Helper()
	in, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.NewSectionReader(in, 0, f.Bytes))
	if err != nil || int64(len(data)) != f.Bytes {
		t.Fatalf("%s: %d bytes of %d, %v", f.Name, len(data), f.Bytes, err)
	}
	return data
}

func holdSnapshot(t *testing.T, tab sparsetable.Table, id uint64, rows map[uint64]float32) *heldSnapshot {
	t.Helper()
	files, err := tab.(sparsetable.SnapshotHolder).HoldSnapshot(id)
	if err != nil {
		t.Fatal(err)
	}
	h := &heldSnapshot{id: id, files: files, rows: maps.Clone(rows), bytes: map[string][]byte{}}
	for i := range files.Files {
		h.bytes[files.Files[i].Name] = readHeld(t, &files.Files[i])
	}
	return h
}

// writeIndex writes the index, or only what has changed since an earlier snapshot.
func (h *heldSnapshot) writeIndex(t *testing.T, earlier *heldSnapshot) {
	t.Helper()
	since := uint64(0)
	if earlier != nil {
		since, h.index = earlier.id, slices.Clone(earlier.index)
	}
	path := filepath.Join(t.TempDir(), "index")
	index, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.files.WriteIndex(index, since), index.Close()); err != nil {
		t.Fatal(err)
	}
	h.index = append(h.index, path)
}

// take makes a table of the held files, which must be unchanged, and releases them.
func (h *heldSnapshot) take(t *testing.T, to sparsetable.Options) {
	t.Helper()
	dirs := to.SSD.Dirs
	if to.Kind != sparsetable.KindSSD {
		dirs = []string{to.Dir}
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i := range h.files.Files {
		f := &h.files.Files[i]
		data := readHeld(t, f)
		if !bytes.Equal(data, h.bytes[f.Name]) {
			t.Errorf("%s has changed", f.Name)
		}
		at := filepath.Join(dirs[i%len(dirs)], f.Name)
		if filepath.Ext(f.Name) == ".delta" {
			at = filepath.Join(dirs[0], f.Name)
		}
		if err := os.WriteFile(at, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if h.files.WriteIndex != nil {
		if h.index == nil {
			h.writeIndex(t, nil)
		}
		if _, err := sparsetable.RestoreIndex(t.Context(), to, h.index); err != nil {
			t.Fatal(err)
		}
		tabletest.Verify(t, to)
	}
	tabletest.CountInto(t, to, h.rows, 0, 10) // compares all rows first
	if err := errors.Join(h.files.Release(), h.files.Release()); err != nil {
		t.Error(err)
	}
}

// TestHoldSnapshot checks that the files of held snapshots of an open table do not change while the
// table is trained, its slots are split, its files are compacted, and its snapshots are dropped. A
// table that is made of them has the rows of the snapshot. Files that are not held are deleted.
func TestHoldSnapshot(t *testing.T) {
	rng := testseed.Rand(t)
	rounds := 12
	if testing.Short() {
		rounds = 5
	}
	for _, kind := range []string{sparsetable.KindSSD, sparsetable.KindMemory} {
		t.Run(kind, func(t *testing.T) {
			options := func() sparsetable.Options {
				o := tabletest.InDirectories(t, 2)
				o.Kind, o.MemoryBytes = kind, 8<<20
				o.SSD.MaxSpaceAmplification = 1.2
				if kind == sparsetable.KindMemory {
					o.Dir, o.SSD = filepath.Join(t.TempDir(), "table"), sparsetable.SSDOptions{}
				}
				return o
			}
			from := options()
			tab, err := sparsetable.Open(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			defer tab.Close()
			rows := map[uint64]float32{}
			var held []*heldSnapshot
			var written *heldSnapshot // the last one whose index was written
			last := uint64(0)
			for range rounds {
				for range 1 + rng.IntN(3) {
					tabletest.CountRows(t, tab, rows, rng.IntN(20_000), 3000)
				}
				if f, ok := tab.(sparsetable.Flusher); ok && rng.IntN(2) == 0 {
					if err := f.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					if _, err := sparsetable.Compact(t.Context(), tab, 0.01, nil); err != nil {
						t.Fatal(err)
					}
				}
				id := tabletest.Commit(t, tab, nil).ID
				if last != 0 {
					if err := tab.DropSnapshot(last); err != nil {
						t.Fatal(err)
					}
				}
				last = id
				h := holdSnapshot(t, tab, id, rows)
				if kind == sparsetable.KindSSD && rng.IntN(3) != 0 {
					h.writeIndex(t, written)
					written = h
				}
				held = append(held, h)
				if rng.IntN(4) == 0 { // a second time: each has to be released
					held = append(held, holdSnapshot(t, tab, id, rows))
				}
				if n := rng.IntN(len(held)); len(held) > 2 {
					held[n].take(t, options())
					held = append(held[:n], held[n+1:]...)
				}
			}
			if _, err := tab.(sparsetable.SnapshotHolder).HoldSnapshot(last + 1); !errors.Is(err, sparsetable.ErrNoSnapshot) {
				t.Errorf("a snapshot that is not there: %v", err)
			}
			for _, h := range held {
				h.take(t, options())
			}
			now := holdSnapshot(t, tab, last, rows)
			if err := tab.Close(); err != nil {
				t.Fatal(err)
			}
			if err := now.files.Release(); err != nil {
				t.Errorf("released after the table was closed: %v", err)
			}
			if kind == sparsetable.KindSSD {
				tabletest.Verify(t, from)
				needed, err := sparsetable.PortableFiles(from)
				if err != nil {
					t.Fatal(err)
				}
				for name := range tabletest.RowFiles(t, from) {
					if filepath.Ext(name) == ".delta" && !slices.ContainsFunc(needed, func(f sparsetable.PortableFile) bool { return f.Name == name }) {
						t.Errorf("%s was not deleted", name)
					}
				}
			}
		})
	}
}
