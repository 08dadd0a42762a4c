package ssd_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// testdata/format1 is a table that was made before files had an incarnation and buckets the format
// of their rows. Its buckets take units of 512 bytes. It was trained three times with 200 rows
// each, beginning at the first, the 100th and the 200th key, and a snapshot was taken each time.
// The last snapshot has its rows outside of buckets.
var format1Layout = sparsetable.Layout{ValueDim: 4, StateDim: 1, Format: sparsetable.BFloat16}

// format1 copies that table into a directory of the test's own and returns its rows.
func format1(t *testing.T) (o sparsetable.Options, rows map[uint64]float32) {
	o = sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: format1Layout}
	if err := os.CopyFS(o.Dir, os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	rows = map[uint64]float32{}
	for _, from := range []int{0, 100, 200} {
		for _, k := range tabletest.KeysFrom(from, 200) {
			rows[k]++
		}
	}
	return o, rows
}

// trainRows compares all rows with the expected ones, trains some of them once more, and takes a
// snapshot.
func trainRows(t *testing.T, tab sparsetable.Table, rows map[uint64]float32, keys []uint64) (id uint64) {
	t.Helper()
	l := tab.Layout()
	found := 0
	err := tab.Scan(t.Context(), func(key uint64, row []float32) error {
		if found++; rows[key] != row[0] {
			t.Errorf("key %x holds %v, want %v", key, row[0], rows[key])
		}
		return nil
	})
	if err != nil || found != len(rows) {
		t.Errorf("%d rows, want %d: %v", found, len(rows), err)
	}
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if ws.Row(i)[0] != rows[k] {
			t.Errorf("key %x is pulled with %v, want %v", k, ws.Row(i)[0], rows[k])
		}
		rows[k]++
		ws.Row(i)[0] = rows[k]
		l.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tabletest.Commit(t, tab, nil).ID
}

// TestSSDFormat1 checks that a table of the older format can be opened and trained, and opened
// again with files of both formats. What is written now must record how its rows are written.
func TestSSDFormat1(t *testing.T) {
	o, rows := format1(t)
	old := bucketPaths(t, o.Dir)
	for range 3 {
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		trainRows(t, tab, rows, tabletest.KeysFrom(50, 20))
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	verifyTable(t, o)
	written := 0
	for _, path := range bucketPaths(t, o.Dir) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := byte(sparsetable.BFloat16)
		if slices.Contains(old, path) {
			want = 0
		} else {
			written++
		}
		if data[28] != want || data[4096+22] != want {
			t.Errorf("%s says format %d, its first bucket %d, want %d", path, data[28], data[4096+22], want)
		}
	}
	if written == 0 {
		t.Error("no file was written")
	}
}

func bucketPaths(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.bucket"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files of buckets in %s: %v", len(paths), dir, err)
	}
	return paths
}

// verifyTable verifies a closed table.
func verifyTable(t *testing.T, o sparsetable.Options) {
	t.Helper()
	if _, err := sparsetable.Verify(t.Context(), o, func(f sparsetable.Fault) { t.Error(f) }, nil); err != nil {
		t.Fatal(err)
	}
}

// TestSSDLargerUnit checks that a table whose buckets take units of 512 bytes can be used on a
// device that reads and writes 4096 bytes at a time: opened for reading with rows outside of
// buckets, opened for writing, scanned, compacted, and opened again on a device with units of 512
// bytes.
func TestSSDLargerUnit(t *testing.T) {
	o, rows := format1(t)
	open := func(unit int, readOnly bool) sparsetable.Table {
		t.Helper()
		dev, err := blockio.Open(t.Context(), o.Dir, blockio.Options{UnitBytes: unit})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
		if dev.Unit() < unit {
			t.Fatalf("a device of unit %d, want %d", dev.Unit(), unit)
		}
		o := o
		o.ReadOnly = readOnly
		tab, err := openOn(t.Context(), o, []blockio.Device{dev}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	closeTable := func(tab sparsetable.Table) {
		t.Helper()
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tab := open(4096, true)
	keys := tabletest.KeysFrom(0, 400)
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if ws.Row(i)[0] != rows[k] {
			t.Errorf("reading only, key %x holds %v, want %v", k, ws.Row(i)[0], rows[k])
		}
	}
	ws.Release()
	closeTable(tab)
	var last uint64
	for i, unit := range []int{4096, 512, 4096} {
		tab := open(unit, false)
		ssd.WaitRestored(tab)
		id := trainRows(t, tab, rows, tabletest.KeysFrom(30*i, 900))
		if last != 0 {
			if err := tab.DropSnapshot(last); err != nil {
				t.Fatal(err)
			}
		}
		last = id
		if _, err := sparsetable.Compact(t.Context(), tab, .01, nil); err != nil {
			t.Fatal(err)
		}
		trainRows(t, tab, rows, tabletest.KeysFrom(0, 10))
		closeTable(tab)
		verifyTable(t, o)
	}
}
