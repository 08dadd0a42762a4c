package modeldir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/trainer/modelfiles"
)

// restorable makes a model directory with one model, whose table is in memory, or on SSD in
// directories elsewhere.
func restorable(t *testing.T, onSSD bool) (dir string) {
	t.Helper()
	at := t.TempDir()
	dir = filepath.Join(at, "model")
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	var m *Manifest
	if onSSD {
		dirs, err := w.PlaceTable([]string{filepath.Join(at, "a"), filepath.Join(at, "b")})
		if err != nil {
			t.Fatal(err)
		}
		m = fillPlaced(t, w, dirs)
		m.Examples = 3
	} else {
		m = fill(t, w, 3)
	}
	if err := os.WriteFile(w.Report(modelfiles.Quarantine), []byte("personal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(commit(w, m, 3, 1), w.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restoreTo restores the model of the directory from to another one.
func restoreTo(t *testing.T, from, to string, number int, id string, dirs []string) error {
	t.Helper()
	m, err := Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	files, err := m.Portable(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := lockRestoring(to) // the first half of Restore
	if err != nil {
		return err
	}
	lastRestoring = r
	if err := r.beginModel(number, id, dirs); err != nil {
		return err
	}
	if err := copyAll(r, files.Files); err != nil {
		return err
	}
	if err := r.Commit(t.Context(), m.Manifest); err != nil {
		return err
	}
	return r.Close()
}

// lastRestoring is the Restoring that restoreTo uses.
var lastRestoring *Restoring

// copyAll copies files to the places to which they are restored.
func copyAll(r *Restoring, files []modelfiles.File) error {
	var names []string
	var sizes []int64
	for _, f := range files {
		names, sizes = append(names, f.Name), append(sizes, f.Bytes)
	}
	if err := r.Place(names, sizes, nil); err != nil {
		return err
	}
	for _, f := range files {
		if err := copyIn(r.Path(f.Name), f); err != nil {
			return err
		}
	}
	return nil
}

func copyIn(to string, f modelfiles.File) error {
	disk.BeforeChange("create", to)
	in, err := f.Open()
	if err != nil {
		return err
	}
	out, err := os.Create(to + ".part")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, 0, f.Bytes))
	disk.BeforeChange("rename", to)
	return errors.Join(err, in.Close(), out.Close(), os.Rename(to+".part", to))
}

// TestRestore checks that a restored model is the same model, with the number that it is given, and
// that it does not have the files that belong to the machine that it came from.
func TestRestore(t *testing.T) {
	for _, onSSD := range []bool{false, true} {
		from := restorable(t, onSSD)
		at := t.TempDir()
		to := filepath.Join(at, "new", "model")
		var dirs []string
		if onSSD {
			dirs = []string{filepath.Join(at, "x"), filepath.Join(at, "y"), filepath.Join(at, "z")}
		}
		if err := restoreTo(t, from, to, 7, "id", dirs); err != nil {
			t.Fatal(err)
		}
		if v := placedOr(t, onSSD, to); v != 3 {
			t.Errorf("the model holds %g", v)
		}
		old, err := Open(from)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Open(to)
		if err != nil {
			t.Fatal(err)
		}
		if m.Number() != 7 || m.Identity() != old.Identity() || m.ID == "" {
			t.Errorf("generation %d, %q, was %q", m.Number(), m.Identity(), old.Identity())
		}
		if err := errors.Join(m.Close(), old.Close()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{restoreName, "table-index", "reports/" + modelfiles.Quarantine} {
			if disk.Exists(filepath.Join(to, "gen-000007", name)) {
				t.Errorf("%s is there", name)
			}
		}
		wantReports(t, to, 3)
		// A model is not overwritten.
		if err := restoreTo(t, from, to, 8, "other", dirs); !errors.Is(err, ErrHasModel) || !strings.Contains(err.Error(), "7 (published)") {
			t.Errorf("%v", err)
		}
	}
}

// TestKilledRestore ends a restore before every change of files. The directory must then have no
// model or the model. The next restore must have the same result, even if it restores another
// generation, restores to other directories, or comes after one of them was lost, and nothing may
// be left over.
func TestKilledRestore(t *testing.T) {
	rng := testseed.Rand(t)
	for _, onSSD := range []bool{false, true} {
		from := restorable(t, onSSD)
		for n, done := 0, false; !done; n++ {
			at := t.TempDir()
			to := filepath.Join(at, "model")
			var dirs []string
			if onSSD {
				dirs = []string{filepath.Join(at, "x"), filepath.Join(at, "y")}
			}
			where := killAt(rng, n, func() {
				if err := restoreTo(t, from, to, 7, "id", dirs); err != nil {
					t.Fatal(err)
				}
			})
			done = where == ""
			if !done {
				died(t, lastRestoring.w)
			}
			_, err := Open(to)
			if err == nil {
				if v := placedOr(t, onSSD, to); v != 3 {
					t.Errorf("killed before %s: the model holds %g", where, v)
				}
				continue
			}
			if !errors.Is(err, ErrNoModel) {
				t.Fatalf("killed before %s: %v", where, err)
			}
			number, id, again := 7, "id", dirs
			var beside []string // the directory of the table on the disk that is left
			switch n % 4 {
			case 1:
				number, id = 6, "another"
			case 3:
				if err := os.RemoveAll(filepath.Join(at, "x")); err != nil {
					t.Fatal(err)
				}
				beside, _ = filepath.Glob(filepath.Join(at, "y", "*"))
			case 2:
				if onSSD {
					again = []string{filepath.Join(at, "y"), filepath.Join(at, "z")}
				}
			}
			if err := restoreTo(t, from, to, number, id, again); err != nil {
				t.Fatalf("killed before %s: %v", where, err)
			}
			if v := placedOr(t, onSSD, to); v != 3 {
				t.Errorf("killed before %s: the model holds %g", where, v)
			}
			for _, dir := range beside { // nobody knows what its files lack: that was in the other one
				if disk.Exists(dir) {
					t.Errorf("killed before %s: %s is used, though the restore has begun anew", where, dir)
				}
			}
			if left := names(t, to); len(left) != 1 {
				t.Errorf("killed before %s: generations %v", where, left)
			}
			tables := 0
			for _, d := range []string{"x", "y", "z"} {
				if disk.Exists(filepath.Join(at, d)) {
					tables += len(entries(t, filepath.Join(at, d)))
				}
			}
			if tables != len(dirs) {
				t.Errorf("killed before %s: %d directories of tables", where, tables)
			}
			if done && n < 10 {
				t.Errorf("a restore changes files %d times", n)
			}
		}
	}
}

// TestRestoreWithoutFailedDisk checks that if a disk fails on which there are files of a model that
// is being restored, the model is restored only to the other entries of sparse_table.dirs, although
// the files on the failed disk cannot be deleted.
func TestRestoreWithoutFailedDisk(t *testing.T) {
	at := t.TempDir()
	dirs := []string{filepath.Join(at, "a"), filepath.Join(at, "b")}
	begin := func(dirs []string) {
		t.Helper()
		r, err := RestoreBeside(filepath.Join(at, "model"), "id", dirs)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.dirs) != len(dirs) || filepath.Dir(r.dirs[0]) != dirs[0] {
			t.Errorf("its table is in %v, want %v", r.dirs, dirs)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	begin(dirs)
	t.Cleanup(func() { diskfault.Inject(nil) })
	for _, fault := range []error{unix.EIO, unix.EROFS} {
		diskfault.Inject(func(_, path string) error {
			if disk.Innermost(dirs[:1], path) == 0 {
				return fault
			}
			return nil
		})
		begin(dirs[1:])
		begin(dirs[1:])
	}
	if got := names(t, filepath.Join(at, "model")); len(got) != 2 {
		t.Errorf("there are %v, want what was begun on both disks, and on one", got)
	}
	diskfault.Inject(nil)
	begin(dirs[1:])
	if got := names(t, filepath.Join(at, "model")); len(got) != 1 {
		t.Errorf("there are %v, though the disk answers again", got)
	}
}

// TestDiscardedOnFailedDisk checks that a restore that was abandoned because a disk of its table
// has failed does not keep the model from being restored again, although what is on that disk
// cannot be deleted.
func TestDiscardedOnFailedDisk(t *testing.T) {
	at := t.TempDir()
	dir, dirs := filepath.Join(at, "model"), []string{filepath.Join(at, "a"), filepath.Join(at, "b")}
	r, err := RestoreBeside(dir, "id", dirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Discard(), r.Close()); err != nil {
		t.Fatal(err)
	}
	diskfault.Inject(func(_, path string) error {
		if disk.Innermost(dirs[:1], path) == 0 {
			return unix.EIO
		}
		return nil
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	if err := RemoveDiscarded(dir); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("%v; there are %v", err, names(t, dir))
	}
	diskfault.Inject(nil)
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || len(names(t, dir)) != 0 || len(entries(t, dirs[0])) != 0 {
		t.Errorf("%v; %v are left, and %v", err, names(t, dir), entries(t, dirs[0]))
	}
}

// TestRestoreWhileOthersFree checks that a restore that continues a killed one starts again if
// another process meanwhile deletes one of its directories, taking it for that of a killed run.
func TestRestoreWhileOthersFree(t *testing.T) {
	t.Cleanup(func() { diskfault.Inject(nil) })
	for first, locked := 0, false; !locked; first++ {
		at := t.TempDir()
		dir, dirs := filepath.Join(at, "model"), []string{filepath.Join(at, "a"), filepath.Join(at, "b")}
		begin := func() []string {
			t.Helper()
			r, err := RestoreBeside(dir, "id", dirs)
			if err != nil {
				t.Fatalf("after %d operations: %v", first, err)
			}
			if err := errors.Join(checkDirs(r.dirs), r.Close()); err != nil {
				t.Fatal(err)
			}
			return r.dirs
		}
		killed := begin()
		operations := 0
		diskfault.Inject(func(operation, path string) error {
			if locked = operation == "write" && path == filepath.Join(killed[1], lockName); locked {
				diskfault.Inject(nil)
			} else if operations == first {
				diskfault.Inject(nil)
				all, err := Orphans(dirs[1:], nil)
				if err != nil || len(all) != 1 {
					t.Fatal(all, err)
				}
				if err := all[0].Free(nil); err != nil {
					t.Fatal(err)
				}
			}
			operations++
			return nil
		})
		begin()
		diskfault.Inject(nil)
	}
}
