package tabletest

import (
	"fmt"
	"path/filepath"
	"testing"

	"aibox/sparsetable"
)

// Tests of operations on whole tables (cloning, moving, opening in other directories) train rows
// whose first value counts how often they were trained, and keep the same counts in a map.

// CountLayout is the layout of these rows.
var CountLayout = sparsetable.Layout{ValueDim: 3, StateDim: 2}

// InDirectories returns the options of a table of KindSSD, with rows of CountLayout, in n new
// directories.
func InDirectories(t *testing.T, n int) sparsetable.Options {
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Layout: CountLayout}
	at := t.TempDir()
	for i := range n {
		o.SSD.Dirs = append(o.SSD.Dirs, filepath.Join(at, fmt.Sprint("ssd", i)))
	}
	return o
}

// SpreadKey is the i-th key. Consecutive keys are far apart.
func SpreadKey(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }

// KeysFrom returns n keys, of which the first has the number from.
func KeysFrom(from, n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = SpreadKey(1 + from + i)
	}
	return keys
}

// CountRows trains n rows, whose first values count how often.
func CountRows(t *testing.T, tab sparsetable.Table, rows map[uint64]float32, from, n int) {
	t.Helper()
	keys := KeysFrom(from, n)
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		rows[k]++
		ws.Row(i)[0] = rows[k]
		CountLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
}

// CountInto opens a table, compares its rows with rows, trains n rows, and saves them.
func CountInto(t *testing.T, o sparsetable.Options, rows map[uint64]float32, from, n int) {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
		if found++; rows[key] != row[0] {
			t.Errorf("key %x holds %v, want %v", key, row[0], rows[key])
		}
		return nil
	})
	if err != nil || found != len(rows) {
		t.Errorf("%d rows, want %d: %v", found, len(rows), err)
	}
	CountRows(t, tab, rows, from, n)
	if f, ok := tab.(sparsetable.Flusher); ok {
		if err := f.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}

// CountDirty trains n rows and takes a snapshot while they are only in the cache, so that
// the snapshot has a delta file.
func CountDirty(t *testing.T, o sparsetable.Options, rows map[uint64]float32, from, n int) {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	CountRows(t, tab, rows, from, n)
	Commit(t, tab, []byte("dirty"))
}

// Commit takes a snapshot, and waits until it is written.
func Commit(t *testing.T, tab sparsetable.Table, record []byte) sparsetable.SnapshotInfo {
	t.Helper()
	p, err := tab.Snapshot(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Verify reads every file of a table.
func Verify(t *testing.T, o sparsetable.Options) {
	t.Helper()
	if _, err := sparsetable.Verify(t.Context(), o, func(f sparsetable.Fault) { t.Errorf("verify: %v", f) }, nil); err != nil {
		t.Fatal(err)
	}
}

// RowFiles returns the names of the files that hold a table's rows.
func RowFiles(t *testing.T, o sparsetable.Options) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, dir := range o.SSD.Dirs {
		files, err := sparsetable.FilesIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files.Rows {
			names[name] = true
		}
	}
	return names
}
