package checkpoint_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
)

// TestMostUsedFirst checks that the rows of a large delta file are sorted by their uses, in classes
// of about an eighth of the rows.
func TestMostUsedFirst(t *testing.T) {
	const rows, hot = 12_000, 1500
	r := mustOpen(t, newDisk(t, 1))
	defer r.close()
	r.must(r.train(1, keysFrom(0, rows)...))
	for range 4 {
		r.must(r.train(2, keysFrom(rows-hot, hot)...))
	}
	s := r.mustSnapshot("first")
	at, late := 0, 0
	r.must(r.store.EachDirty(t.Context(), checkpoint.Layer{s.Deltas[0]}, func(_ int, d *deltafile.Reader, n int) error {
		for i := range n {
			if key, _, _ := d.Entry(i); key >= rows-hot && at+i >= hot {
				late++
			}
		}
		at += n
		return nil
	}))
	if at != rows || late > 0 {
		t.Errorf("of %d rows, %d of the most used come behind others", at, late)
	}
}

// clean returns how many clean rows a snapshot has saved.
func clean(s catalog.Snapshot) (rows int64) {
	for _, d := range s.Deltas {
		if d.Snapshot == s.ID {
			rows += d.Rows - d.DirtyRows
		}
	}
	return rows
}

// withClean returns a room with 60 rows, all of which are in buckets and in the cache.
func withClean(t *testing.T, d *disk) *room {
	t.Helper()
	r := mustOpenWith(t, d, roomOptions{hotBytes: 1 << 20})
	r.must(r.train(1, keysFrom(0, 60)...))
	r.allStored()
	return r
}

func (r *room) allStored() {
	r.t.Helper()
	for slot := range uint32(tableSlot) {
		r.must(r.write(slot, false))
	}
}

// TestCleanRows checks that a snapshot also has the clean rows that are in the cache, but not if it
// is taken during training, and not on a disk that is nearly full. A file that has only clean rows
// is deleted with its snapshot.
func TestCleanRows(t *testing.T) {
	d := newDisk(t, 1)
	r := withClean(t, d)
	first := r.mustSnapshot("first")
	if n := clean(first); n != 60 || checkpoint.DirtyRows(first.Deltas) != 0 {
		t.Fatalf("%d clean rows: %+v", n, first.Deltas)
	}
	second := r.mustSnapshot("second")
	if n := clean(second); n != 60 {
		t.Errorf("the second snapshot has %d clean rows", n)
	}
	r.must(r.store.Drop(first.ID))
	if have := d.names(t, ".delta"); !slices.Equal(have, namesOf(second.Deltas)) {
		t.Errorf("%v are left, want %v", have, namesOf(second.Deltas))
	}
	r.must(r.store.Drop(second.ID)) // the next one does not refer to its clean rows
	if have := d.names(t, ".delta"); len(have) > 0 {
		t.Errorf("%v are left", have)
	}
	r.must(r.train(2, 1, 2, 3))
	third := r.mustSnapshot("third")
	if n, dirty := clean(third), checkpoint.DirtyRows(third.Deltas); n != 57 || dirty != 3 {
		t.Errorf("%d clean rows, %d dirty ones", n, dirty)
	}
	have := map[uint64]bool{}
	r.must(r.store.EachClean(t.Context(), third, func(d *deltafile.Reader, n int) (bool, error) {
		for i := range n {
			key, _, row := d.Entry(i)
			have[key] = row[0] == 1
		}
		return true, nil
	}))
	if len(have) != 57 || have[1] || slices.Contains(slices.Collect(maps.Values(have)), false) {
		t.Errorf("the clean rows are %v", have)
	}
	r.must(r.pin(50))
	if n := clean(r.mustSnapshot("amid training")); n != 0 {
		t.Errorf("amid training, %d clean rows were saved", n)
	}
	r.release()
	if n := clean(r.mustSnapshot("after training")); n != 56 {
		t.Errorf("after training, %d clean rows were saved", n)
	}
	d.devices[0].SetCapacity(200 << 20)
	r.must(r.train(3, keysFrom(0, 60)...))
	r.allStored()
	r.must(r.train(4, 1, 2, 3))
	if s := r.mustSnapshot("a small disk"); clean(s) != 0 || checkpoint.DirtyRows(s.Deltas) != 3 {
		t.Errorf("on a disk that is nearly full, %d clean rows were saved", clean(s))
	}
	r.close()
}

// TestLostFile checks that the error about a missing delta file names the directory for which the
// file was written, since the disk of that directory is at fault.
func TestLostFile(t *testing.T) {
	for lost := range 2 {
		d := newDisk(t, 2)
		r := mustOpen(t, d)
		r.must(r.train(1, keysFrom(0, 60)...))
		s := r.mustSnapshot("first")
		r.close()
		if err := d.devices[lost].Remove(s.Deltas[lost].Name); err != nil {
			t.Fatal(err)
		}
		if _, err := openRoom(t, d, roomOptions{}); err == nil || !strings.Contains(err.Error(), dirName(lost)+"/"+s.Deltas[lost].Name) {
			t.Errorf("without a file of %s: %v", dirName(lost), err)
		}
	}
}

// TestFilesElsewhere checks that a table with a delta file in another directory than the one for
// which it was written is opened with all rows. The next snapshot refers to no earlier file,
// because keys are now assigned to the directories in another way.
func TestFilesElsewhere(t *testing.T) {
	d := newDisk(t, 2)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 60)...))
	s := r.mustSnapshot("first")
	r.close()
	moved := s.Deltas[1]
	d.devices[0].SetBytes(moved.Name, d.devices[1].Bytes(moved.Name))
	r.must(d.devices[1].Remove(moved.Name))
	r = mustOpen(t, d)
	if len(r.rows) != 60 || r.store.DirOf(moved.Name) != 0 {
		t.Errorf("%d rows; %s is in directory %d", len(r.rows), moved.Name, r.store.DirOf(moved.Name))
	}
	r.must(r.train(2, 1))
	second := r.mustSnapshot("second")
	if n := checkpoint.DirtyRows(second.Deltas); n != 60 || len(checkpoint.Layers(second.Deltas)) != 1 {
		t.Errorf("it refers to earlier files: %+v", second.Deltas)
	}
	r.must(r.store.Drop(s.ID))
	r.close()
	if have := d.names(t, ".delta"); !slices.Equal(have, namesOf(second.Deltas)) {
		t.Errorf("%v are left, want %v", have, namesOf(second.Deltas))
	}
}

// TestGrownFile checks that whether a bucket was written before the instant of a delta file depends
// on the length that the bucket file had then, and not only on when the bucket file was begun.
func TestGrownFile(t *testing.T) {
	d := newDisk(t, 1)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 60)...))
	r.must(r.write(3, false)) // begins a file
	r.must(r.train(2, keysFrom(0, 60)...))
	first := r.mustSnapshot("first")
	r.must(r.write(3, true)) // behind it, with newer rows than the first snapshot's file
	r.must(r.train(3, keysFrom(0, 5)...))
	second := r.mustSnapshot("second")
	if len(second.Files) == 0 || second.Files[0].Begun >= first.Deltas[0].Seq || len(second.Deltas) != 2 {
		t.Fatalf("the test shows nothing: %+v", second)
	}
	want := maps.Clone(r.rows)
	dirty := r.cache.Stats().Dirty
	r.close()
	r = mustOpen(t, d)
	defer r.close()
	if !maps.Equal(r.rows, want) || r.cache.Stats().Dirty != dirty {
		t.Errorf("it has %s; %d rows are dirty, want %d", differences(r.rows, want), r.cache.Stats().Dirty, dirty)
	}
}
