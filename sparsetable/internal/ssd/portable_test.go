package ssd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/tabletest"
)

// takeAway copies a snapshot's files and its index to the directories of another table.
func takeAway(t *testing.T, from, to sparsetable.Options) sparsetable.SnapshotInfo {
	t.Helper()
	held, err := sparsetable.Hold(from)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	files, err := sparsetable.PortableFiles(from)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var sizes []int64
	for _, f := range files {
		if !f.Unique {
			t.Errorf("%s is not unique", f.Name)
		}
		names, sizes = append(names, f.Name), append(sizes, f.Bytes)
	}
	dirs := to.SSD.Dirs
	at := sparsetable.SpreadFiles(names, sizes, len(dirs))
	if !slices.Equal(at, sparsetable.SpreadFiles(names, sizes, len(dirs))) {
		t.Error("files are spread in another way the second time")
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range files {
		data, err := os.ReadFile(f.Path)
		if err != nil || int64(len(data)) < f.Bytes {
			t.Fatalf("%s: %d bytes, %v", f.Name, len(data), err)
		}
		data = data[:f.Bytes] // more does not belong to the snapshot
		if err := os.WriteFile(filepath.Join(dirs[at[i]], f.Name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var index bytes.Buffer
	if err := sparsetable.WriteIndex(from, &index); err != nil {
		t.Fatal(err)
	}
	// A call that fails leaves no table, and the next one is not disturbed by it.
	restore := func(data []byte) ([]sparsetable.SnapshotInfo, error) {
		path := filepath.Join(t.TempDir(), "index")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return sparsetable.RestoreIndex(t.Context(), to, []string{path})
	}
	var damaged *sparsetable.CorruptionError
	if _, err := restore(index.Bytes()[:index.Len()-1]); !errors.As(err, &damaged) {
		t.Errorf("an index that was cut short: %v", err)
	}
	infos, err := restore(index.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return infos[0]
}

// TestPortable checks that a snapshot that is copied as files is the same table in any number of
// directories, including rows that are in no bucket yet. Both tables can be trained further, and
// the files that they write have different names.
func TestPortable(t *testing.T) {
	for _, dirs := range [][]int{{1, 1}, {3, 1}, {1, 3}, {2, 2}} {
		t.Run(fmt.Sprint(dirs), func(t *testing.T) {
			from, to := tabletest.InDirectories(t, dirs[0]), tabletest.InDirectories(t, dirs[1])
			rows := map[uint64]float32{}
			tabletest.CountInto(t, from, rows, 0, 5000)
			tabletest.CountInto(t, from, rows, 1000, 3000)
			tabletest.CountDirty(t, from, rows, 500, 700)
			info := takeAway(t, from, to)
			if string(info.Record) != "dirty" || info.Rows != int64(len(rows)) {
				t.Errorf("%+v", info)
			}
			tabletest.Verify(t, to)
			theirs := map[uint64]float32{}
			maps.Copy(theirs, rows)
			before := tabletest.RowFiles(t, from)
			tabletest.CountInto(t, to, theirs, 2000, 3000)
			tabletest.CountInto(t, from, rows, 100, 2500)
			tabletest.Verify(t, to)
			tabletest.Verify(t, from)
			ours := tabletest.RowFiles(t, from)
			for name := range tabletest.RowFiles(t, to) {
				if ours[name] && !before[name] {
					t.Errorf("both tables have written %s", name)
				}
			}
			tabletest.Verify(t, from)
		})
	}
}

// TestPortableUnits restores a table whose buckets take units of 512 bytes to devices that read and
// write 4096 bytes at a time, and the other way round, in another number of directories. Its files
// end where the snapshot's last record does, which is within a block of such a device.
func TestPortableUnits(t *testing.T) {
	for _, c := range []struct{ from, to, fromDirs, toDirs int }{
		{512, 4096, 1, 1}, {512, 4096, 1, 3}, {512, 4096, 3, 2}, {4096, 512, 1, 2}, {4096, 512, 3, 1}, {4096, 4096, 2, 3},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			from, to := tabletest.InDirectories(t, c.fromDirs), tabletest.InDirectories(t, c.toDirs)
			rows := map[uint64]float32{}
			for i := range 3 {
				trainOn(t, from, c.from, rows, 1000*i, 2500+7*i)
			}
			takeAway(t, from, to)
			tabletest.Verify(t, to)
			inBlocks := 0
			for name := range tabletest.RowFiles(t, to) {
				for _, dir := range to.SSD.Dirs {
					if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size()%4096 != 0 {
						inBlocks++
					}
				}
			}
			if c.from == 512 && inBlocks == 0 {
				t.Error("no file ends within a block, so the test shows nothing")
			}
			for i := range 3 {
				trainOn(t, to, c.to, rows, 700*i, 3000)
				tabletest.Verify(t, to)
			}
			to.ReadOnly = true
			trainOn(t, to, c.to, rows, 0, 0)
		})
	}
}

// trainOn opens the table on devices with the given unit and compares all rows, by pulling them and
// by a scan. If the table may be written to, it also trains n rows, beginning with the given one,
// compacts the files, trains some more rows that are in no bucket, and takes a snapshot.
func trainOn(t *testing.T, o sparsetable.Options, unit int, rows map[uint64]float32, from, n int) {
	t.Helper()
	var devices []blockio.Device
	for _, dir := range o.SSD.Dirs {
		dev, err := blockio.Open(t.Context(), dir, blockio.Options{UnitBytes: unit, ReadOnly: o.ReadOnly})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}()
		if dev.Unit() < unit {
			t.Fatalf("a device of unit %d, want %d", dev.Unit(), unit)
		}
		devices = append(devices, dev)
	}
	tab, err := openOn(t.Context(), o, devices, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	keys := slices.Sorted(maps.Keys(rows))
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if ws.Row(i)[0] != rows[k] {
			t.Errorf("key %x holds %v, want %v", k, ws.Row(i)[0], rows[k])
		}
	}
	ws.Release()
	found := 0
	if err := tab.Scan(t.Context(), func(key uint64, row []float32) error {
		if found++; rows[key] != row[0] {
			t.Errorf("key %x is scanned as %v, want %v", key, row[0], rows[key])
		}
		return nil
	}); err != nil || found != len(rows) {
		t.Errorf("%d rows, want %d: %v", found, len(rows), err)
	}
	if o.ReadOnly {
		return
	}
	tabletest.CountRows(t, tab, rows, from, n)
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sparsetable.Compact(t.Context(), tab, .01, nil); err != nil {
		t.Fatal(err)
	}
	tabletest.CountRows(t, tab, rows, from+n/2, n)
	tabletest.Commit(t, tab, nil)
}

// TestPortableMissing checks that an error names a missing file.
func TestPortableMissing(t *testing.T) {
	o := tabletest.InDirectories(t, 2)
	rows := map[uint64]float32{}
	tabletest.CountInto(t, o, rows, 0, 5000)
	for name := range tabletest.RowFiles(t, o) {
		for _, dir := range o.SSD.Dirs {
			os.Remove(filepath.Join(dir, name))
		}
		break
	}
	if _, err := sparsetable.PortableFiles(o); !errors.Is(err, sparsetable.ErrFiles) {
		t.Errorf("%v", err)
	}
	if err := sparsetable.WriteIndex(tabletest.InDirectories(t, 1), io.Discard); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
}
