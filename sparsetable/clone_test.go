package sparsetable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/transfer"
	"aibox/sparsetable/tabletest"
)

// TestClone checks that a clone has the rows of the snapshot, that shared files take no space for
// it, and that later changes of either table have no effect on the other. The same holds for clones
// of clones.
func TestClone(t *testing.T) {
	for _, dirs := range [][]int{{1, 1}, {3, 3}, {2, 1}, {1, 3}} {
		t.Run(fmt.Sprint(dirs), func(t *testing.T) {
			from, to, third := tabletest.InDirectories(t, dirs[0]), tabletest.InDirectories(t, dirs[1]), tabletest.InDirectories(t, dirs[1])
			rows := map[uint64]float32{}
			tabletest.CountInto(t, from, rows, 0, 5000)
			tabletest.CountInto(t, from, rows, 1000, 3000)
			tabletest.CountDirty(t, from, rows, 500, 700)
			info, err := sparsetable.Clone(t.Context(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			if info.Snapshot.Rows != int64(len(rows)) || info.CopiedBytes != 0 || info.LinkedBytes < info.Snapshot.Rows*int64(tabletest.CountLayout.Bytes()) ||
				info.Snapshot.Bytes == 0 || info.Snapshot.Bytes > info.LinkedBytes/10 || string(info.Snapshot.Record) != "dirty" || info.Snapshot.Layout != tabletest.CountLayout {
				t.Errorf("Clone says %+v of %d rows", info, len(rows))
			}
			shared := 0
			for _, dir := range to.SSD.Dirs {
				files, err := filepath.Glob(filepath.Join(dir, "*"))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range files {
					if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Sys().(*syscall.Stat_t).Nlink == 2 {
						shared++
					}
				}
			}
			if shared == 0 {
				t.Error("the tables share no file")
			}
			theirs := maps.Clone(rows)
			tabletest.CountInto(t, to, theirs, 3000, 4000) // compares all rows with theirs first
			tabletest.CountInto(t, from, rows, 0, 2000)
			last := maps.Clone(theirs)
			if _, err := sparsetable.Clone(t.Context(), to, third); err != nil {
				t.Fatal(err)
			}
			if err := sparsetable.Remove(to.SSD.Dirs, false); err != nil {
				t.Fatal(err)
			}
			tabletest.CountInto(t, third, last, 0, 100)
			tabletest.CountInto(t, from, rows, 0, 100)
			tabletest.Verify(t, from)
			tabletest.Verify(t, third)
		})
	}
}

// TestCloneOfASnapshot checks that an earlier snapshot can be cloned, too.
func TestCloneOfASnapshot(t *testing.T) {
	from := tabletest.InDirectories(t, 2)
	rows := map[uint64]float32{}
	tabletest.CountInto(t, from, rows, 0, 2000)
	before := maps.Clone(rows)
	tabletest.CountInto(t, from, rows, 1000, 2000)
	from.SnapshotID = 1
	to := tabletest.InDirectories(t, 2)
	if _, err := sparsetable.Clone(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	tabletest.CountInto(t, to, before, 0, 10)
	from.SnapshotID = 7
	if _, err := sparsetable.Clone(t.Context(), from, tabletest.InDirectories(t, 2)); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
}

// TestCloneCopies checks that files are copied if they cannot be linked.
func TestCloneCopies(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EXDEV, syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK} {
		n := 0
		restore := transfer.LinkWith(func(from, to string) error {
			if n++; n%3 == 0 { // some can be linked
				return os.Link(from, to)
			}
			return &os.LinkError{Op: "link", Old: from, New: to, Err: errno}
		})
		from, to := tabletest.InDirectories(t, 2), tabletest.InDirectories(t, 2)
		rows := map[uint64]float32{}
		tabletest.CountInto(t, from, rows, 0, 3000)
		tabletest.CountDirty(t, from, rows, 0, 700)
		info, err := sparsetable.Clone(t.Context(), from, to)
		restore()
		if err != nil || info.CopiedBytes == 0 || info.LinkedBytes == 0 {
			t.Errorf("%v: %+v, %v", errno, info, err)
		}
		theirs := maps.Clone(rows)
		tabletest.CountInto(t, to, theirs, 0, 1000)
		tabletest.CountInto(t, from, rows, 500, 1000)
	}
}

// TestCloneLinksWhereItCan checks that the files of a table of one directory go to that one of the
// new directories that is on the same file system, so that they can be linked. Only the delta files
// must be in the first directory.
func TestCloneLinksWhereItCan(t *testing.T) {
	from, to := tabletest.InDirectories(t, 1), tabletest.InDirectories(t, 2)
	rows := map[uint64]float32{}
	tabletest.CountInto(t, from, rows, 0, 3000)
	tabletest.CountDirty(t, from, rows, 0, 700)
	defer transfer.LinkWith(func(a, b string) error {
		if filepath.Dir(b) == to.SSD.Dirs[0] {
			return &os.LinkError{Op: "link", Old: a, New: b, Err: syscall.EXDEV}
		}
		return os.Link(a, b)
	})()
	if _, err := sparsetable.Clone(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{to.SSD.Dirs[0]: false, to.SSD.Dirs[1]: true} {
		if files, err := filepath.Glob(filepath.Join(dir, "*.bucket")); err != nil || (len(files) > 0) != want {
			t.Errorf("%s has %v, %v", dir, files, err)
		}
	}
	tabletest.CountInto(t, to, rows, 0, 100)
}

// TestCloneFails makes each operation fail in turn. No table may exist afterwards, and the original
// one must be as before.
func TestCloneFails(t *testing.T) {
	from := tabletest.InDirectories(t, 2)
	rows := map[uint64]float32{}
	tabletest.CountInto(t, from, rows, 0, 3000)
	tabletest.CountDirty(t, from, rows, 0, 700)
	failed := errors.New("failed")
	for n := 0; ; n++ {
		left := n
		ctx, cancel := context.WithCancel(t.Context())
		restore := transfer.LinkWith(func(a, b string) error {
			if left--; left < 0 {
				if n%2 == 0 {
					cancel()
					return os.Link(a, b)
				}
				return failed
			}
			return os.Link(a, b)
		})
		to := tabletest.InDirectories(t, 2)
		_, err := sparsetable.Clone(ctx, from, to)
		restore()
		cancel()
		if err == nil {
			if n < 3 {
				t.Errorf("%d files were linked", n)
			}
			break
		}
		if !errors.Is(err, failed) && !errors.Is(err, context.Canceled) {
			t.Errorf("failure %d: %v", n, err)
		}
		to.MustExist = true
		if _, err := sparsetable.Open(t.Context(), to); err == nil {
			t.Fatalf("failure %d: there is a table", n)
		}
		// What is left is not taken for a table, nor is it overwritten.
		to.MustExist = false
		if _, err := sparsetable.Clone(t.Context(), from, to); n > 0 && left < -1 && !errors.Is(err, sparsetable.ErrFiles) {
			t.Errorf("failure %d: a second clone into the same directories: %v", n, err)
		}
	}
	tabletest.CountInto(t, from, rows, 0, 10)
}

// TestCloneRefuses checks which tables cannot be cloned, and which directories a table cannot be
// cloned to.
func TestCloneRefuses(t *testing.T) {
	from := tabletest.InDirectories(t, 1)
	rows := map[uint64]float32{}
	if _, err := sparsetable.Clone(t.Context(), from, tabletest.InDirectories(t, 1)); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("no table: %v", err)
	}
	tabletest.CountInto(t, from, rows, 0, 100)
	memory := from
	memory.Kind, memory.Dir = sparsetable.KindMemory, t.TempDir()
	for _, pair := range [][2]sparsetable.Options{{from, memory}, {memory, from}} {
		if _, err := sparsetable.Clone(t.Context(), pair[0], pair[1]); !errors.Is(err, sparsetable.ErrNotCloneable) {
			t.Errorf("another kind: %v", err)
		}
	}
	if _, err := sparsetable.Clone(t.Context(), from, from); !errors.Is(err, sparsetable.ErrFiles) {
		t.Errorf("onto itself: %v", err)
	}
	tab, err := sparsetable.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sparsetable.Clone(t.Context(), from, tabletest.InDirectories(t, 1)); !errors.Is(err, sparsetable.ErrInUse) {
		t.Errorf("while it is written: %v", err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"bucket"} {
		files, err := filepath.Glob(filepath.Join(from.SSD.Dirs[0], "*."+path))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := sparsetable.Clone(t.Context(), from, tabletest.InDirectories(t, 1)); !errors.Is(err, sparsetable.ErrFiles) {
			t.Errorf("without a %s file: %v", path, err)
		}
	}
}
