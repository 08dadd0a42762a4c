package ssd_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// trainDeltas opens a table, compares its rows, and takes n snapshots, each after training that
// many rows. It keeps the last snapshot and returns the names of its delta files. In between, some
// rows are written to their buckets.
func trainDeltas(t *testing.T, o sparsetable.Options, rows map[uint64]float32, n, from, each int) (names []string) {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	hasRows(t, tab, rows)
	last := uint64(0)
	if infos, err := tab.Snapshots(); err == nil && len(infos) > 0 {
		last = infos[len(infos)-1].ID
	}
	for i := range n {
		tabletest.CountRows(t, tab, rows, from+i*each/2, each)
		info := tabletest.Commit(t, tab, nil)
		if last != 0 {
			if err := tab.DropSnapshot(last); err != nil {
				t.Fatal(err)
			}
		}
		last, names = info.ID, ssd.DeltasOf(tab, info.ID)
		if err := ssd.EvictRows(tab, 20); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	return names
}

func hasRows(t *testing.T, tab sparsetable.Table, rows map[uint64]float32) {
	t.Helper()
	have := map[uint64]float32{}
	err := tab.Scan(t.Context(), func(key uint64, row []float32) error { have[key] = row[0]; return nil })
	if err != nil || !maps.Equal(have, rows) {
		t.Fatalf("%d rows, want %d, the same: %v, %v", len(have), len(rows), maps.Equal(have, rows), err)
	}
}

// TestCloneOfDeltas checks that a clone of a snapshot with several delta files has its rows and
// links all of these files, and that the clone's next snapshots may refer to them. Whatever either
// table does with its files (refer to them, write their rows into one file, delete them) has no
// effect on the other table, nor on a clone of the clone.
func TestCloneOfDeltas(t *testing.T) {
	from, to, third := tabletest.InDirectories(t, 2), tabletest.InDirectories(t, 1), tabletest.InDirectories(t, 3)
	for _, o := range []*sparsetable.Options{&from, &to, &third} {
		o.SSD.HotBytes = -1
	}
	rows := map[uint64]float32{}
	tabletest.CountDirty(t, from, rows, 0, 4000)
	names := trainDeltas(t, from, rows, 4, 0, 200)
	if len(names) < 4 {
		t.Fatalf("the snapshot has the files %v", names)
	}
	info, err := sparsetable.Clone(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(to.SSD.Dirs[0], name)); err != nil {
			t.Error(err)
		}
	}
	tab, err := sparsetable.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := tab.Snapshots()
	if err != nil || len(infos) != 1 || infos[0].Bytes <= info.Snapshot.Bytes || infos[0].Bytes > info.Snapshot.Bytes+info.LinkedBytes {
		t.Errorf("the clone's snapshots are %+v, Clone said %+v: %v", infos, info, err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	theirs := maps.Clone(rows)
	if got := trainDeltas(t, to, theirs, 1, 300, 100); !slices.Equal(got[:len(got)-1], names) {
		t.Errorf("the clone's snapshot has the files %v, want %v and another", got, names)
	}
	last := maps.Clone(theirs)
	if _, err := sparsetable.Clone(t.Context(), to, third); err != nil {
		t.Fatal(err)
	}
	// Many snapshots, so that rows are written into one file, and the others deleted.
	if got := trainDeltas(t, from, rows, 20, 50, 100); slices.Contains(got, names[0]) {
		t.Errorf("the rows were not written into one file: %v", got)
	}
	trainDeltas(t, to, theirs, 20, 1000, 300)
	for _, name := range names {
		for _, o := range []sparsetable.Options{from, to} {
			if _, err := os.Stat(filepath.Join(o.SSD.Dirs[0], name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still in %v: %v", name, o.SSD.Dirs, err)
			}
		}
	}
	if err := sparsetable.Remove(from.SSD.Dirs, false); err != nil {
		t.Fatal(err)
	}
	trainDeltas(t, third, last, 2, 4000, 300)
	trainDeltas(t, to, theirs, 0, 0, 0)
	tabletest.Verify(t, to)
	tabletest.Verify(t, third)
	third.ReadOnly = true
	tab, err = sparsetable.Open(t.Context(), third)
	if err != nil {
		t.Fatal(err)
	}
	hasRows(t, tab, last)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCloneOfAnOldTable checks that a table of an older version, which has no hash of its own,
// cannot be cloned.
func TestCloneOfAnOldTable(t *testing.T) {
	old := tabletest.InDirectories(t, 1)
	tab, err := openOldOn(t.Context(), old, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sparsetable.Clone(t.Context(), old, tabletest.InDirectories(t, 1)); !errors.Is(err, sparsetable.ErrNotCloneable) {
		t.Errorf("an old table: %v", err)
	}
}
