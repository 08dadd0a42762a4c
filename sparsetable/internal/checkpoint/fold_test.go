package checkpoint_test

import (
	"cmp"
	"fmt"
	"testing"

	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
)

func keysFrom(from, n int) (keys []uint64) {
	for i := range n {
		keys = append(keys, uint64(from+i))
	}
	return keys
}

// TestFold checks that a snapshot writes only the rows that have changed since the last one and
// refers to the earlier files for the others, as long as all these files have at most twice as many
// rows as are dirty. Then it writes all dirty rows into one file. If there are 64 files, the next
// snapshot writes the rows of the newest ones, which are small compared with the others, into one
// file instead. A file that no list has is deleted as soon as no snapshot has it.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		dirty, changed, folded int // folded: the number of the first snapshot that refers to no earlier one; 0: there is none
	}{
		{100, 10, 11},
		{100, 25, 5},
		{100, 100, 1}, // no row is as the earlier file has it
		{100, 99, 2},
		{1000, 1, 0},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			r := mustOpen(t, newDisk(t, 1))
			defer r.close()
			r.must(r.train(1, keysFrom(0, c.dirty)...))
			last := r.mustSnapshot("first")
			for n := 1; n <= cmp.Or(c.folded, 150); n++ {
				r.must(r.train(float32(n), keysFrom(0, c.changed)...))
				s := r.mustSnapshot(fmt.Sprint(n))
				r.must(r.store.Drop(last.ID))
				last = s
				files, own := 1+n, int64(c.changed)
				switch c.folded {
				case n:
					files, own = 1, int64(c.dirty)
				case 0:
					files = 2 + (n-1)%63
				}
				if len(s.Deltas) != files || s.Deltas[files-1].DirtyRows != own {
					t.Fatalf("snapshot %d: %d files, the last has %d rows; want %d and %d", n, len(s.Deltas), s.Deltas[len(s.Deltas)-1].DirtyRows, files, own)
				}
				if got := r.disk.names(t, ".delta"); len(got) != files {
					t.Fatalf("snapshot %d: %d files are on disk, want %d", n, len(got), files)
				}
			}
		})
	}
}

// TestFoldForgetsBuckets checks rows that were written to a bucket: they are no longer dirty, but
// remain in the files, so that the files are merged into one earlier.
func TestFoldForgetsBuckets(t *testing.T) {
	r := mustOpen(t, newDisk(t, 1))
	defer r.close()
	r.must(r.train(1, keysFrom(0, 160)...))
	first := r.mustSnapshot("first")
	dirty := func() int64 { return r.cache.Stats().Dirty }
	for slot := uint32(0); dirty() > 80; slot++ {
		r.must(r.write(slot, true))
	}
	if left := dirty(); left == 0 || left == 160 || 160 <= 2*left {
		t.Fatalf("%d rows are dirty: the test shows nothing", left)
	}
	s := r.mustSnapshot("second")
	if len(s.Deltas) != 1 || s.Deltas[0].Name == first.Deltas[0].Name || s.Deltas[0].DirtyRows != dirty() {
		t.Errorf("160 rows stay in a file although %d of them are dirty: %+v", dirty(), s.Deltas)
	}
	if s.Rows != 160 {
		t.Errorf("the snapshot has %d rows", s.Rows)
	}
}

// TestRestart checks that after Restart a snapshot writes all dirty rows, refers to no earlier
// file, and has the same rows.
func TestRestart(t *testing.T) {
	d := newDisk(t, 1)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 50)...))
	first := r.mustSnapshot("first")
	r.must(r.train(2, 1))
	r.store.Restart()
	r.must(r.store.Drop(first.ID))
	if names := d.names(t, ".delta"); len(names) != 0 {
		t.Errorf("nothing needs %v", names)
	}
	s := r.mustSnapshot("second")
	if len(s.Deltas) != 1 || s.Deltas[0].DirtyRows != 50 || checkpoint.WrittenBytes(s) != s.Deltas[0].Bytes+s.PageBytes {
		t.Errorf("%+v", s)
	}
	r.close()
	again := mustOpen(t, d)
	defer again.close()
	if len(again.rows) != 50 || again.rows[1] != 2 {
		t.Errorf("%d rows, %v", len(again.rows), again.rows[1])
	}
}

// TestNothingChanged checks that a snapshot of a table that has not changed writes no delta file,
// not even an empty one.
func TestNothingChanged(t *testing.T) {
	r := mustOpen(t, newDisk(t, 2))
	defer r.close()
	r.must(r.train(1, keysFrom(0, 50)...))
	first := r.mustSnapshot("first")
	for range 3 {
		s := r.mustSnapshot("again")
		if fmt.Sprint(namesOf(s.Deltas)) != fmt.Sprint(namesOf(first.Deltas)) || len(r.disk.names(t, ".delta")) != len(first.Deltas) {
			t.Fatalf("files %v, of the first %v; on disk %v", namesOf(s.Deltas), namesOf(first.Deltas), r.disk.names(t, ".delta"))
		}
	}
	checkKept(t, r, first)
}

// checkKept checks that Kept counts the files to which a snapshot refers. The room has no others.
func checkKept(t *testing.T, r *room, s catalog.Snapshot) {
	t.Helper()
	files, bytes := make([]int, len(r.disk.devices)), make([]int64, len(r.disk.devices))
	for _, d := range s.Deltas {
		files[d.Dir]++
		bytes[d.Dir] += d.Bytes
	}
	if f, b := r.store.Kept(); fmt.Sprint(f, b) != fmt.Sprint(files, bytes) {
		t.Errorf("the Store counts %v files of %v bytes, the snapshot has %v of %v", f, b, files, bytes)
	}
}
