package outside

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// models treats each model directory as one with a single generation, which needs its table.
var models = &Tables{
	Generations:  func(string) []string { return []string{"gen-000001"} },
	Needs:        func(model, gen string) bool { return disk.Exists(filepath.Join(model, gen)) },
	LockRemoving: func(string) (*os.File, error) { return nil, nil },
}

// place makes the table of a model directory on a disk.
func place(t *testing.T, model, ssd string) (*Run, string) {
	t.Helper()
	r := models.NewRun(model, "gen-000001")
	err := os.MkdirAll(filepath.Join(model, "gen-000001"), 0o755)
	dirs, e := r.Place([]string{ssd})
	if err = errors.Join(err, e); err != nil {
		t.Fatal(err)
	}
	return r, dirs[0]
}

func orphans(t *testing.T, ssd string) []Orphan {
	t.Helper()
	all, err := models.Orphans([]string{ssd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCopyBecomesOwner checks that a table is deleted with the last model that refers to it.
func TestCopyBecomesOwner(t *testing.T) {
	at := t.TempDir()
	first, second := filepath.Join(at, "a", "model"), filepath.Join(at, "b", "model")
	r, dir := place(t, first, filepath.Join(at, "ssd"))
	r.Close()
	if err := os.CopyFS(second, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	if of := models.CopyOf(first, filepath.Join(first, "gen-000001"), []string{dir}); of != "" {
		t.Errorf("the original is a copy of %s", of)
	}
	if of := models.CopyOf(second, filepath.Join(second, "gen-000001"), []string{dir}); of != disk.RealDir(first) {
		t.Errorf("a copy is one of %q", of)
	}
	for i, model := range []string{first, second} {
		gen := filepath.Join(model, "gen-000001")
		dirs, err := Dirs(gen)
		if err != nil || !slices.Equal(dirs, []string{dir}) {
			t.Fatal(dirs, err)
		}
		if err := errors.Join(os.Rename(gen, gen+"-deleted"), models.Remove(model, gen, dirs)); err != nil {
			t.Fatal(err)
		}
		if disk.Gone(dir) != (i == 1) {
			t.Errorf("after %d models are deleted, the table is gone: %v", i+1, disk.Gone(dir))
		}
	}
}

// TestCopyOfMovedModelStays checks that a copy that was opened keeps the table, even if the
// original model was then moved, which makes it the owner in its new place, and deleted there.
func TestCopyOfMovedModelStays(t *testing.T) {
	at := t.TempDir()
	first, copied, moved := filepath.Join(at, "a", "model"), filepath.Join(at, "b", "model"), filepath.Join(at, "c", "model")
	r, dir := place(t, first, filepath.Join(at, "ssd"))
	r.Close()
	if err := os.CopyFS(copied, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	models.CopyOf(copied, filepath.Join(copied, "gen-000001"), []string{dir})
	if err := os.Rename(filepath.Dir(first), filepath.Dir(moved)); err != nil {
		t.Fatal(err)
	}
	gen := filepath.Join(moved, "gen-000001")
	if of := models.CopyOf(moved, gen, []string{dir}); of != "" {
		t.Errorf("the moved model is a copy of %s", of)
	}
	if err := errors.Join(os.RemoveAll(gen), models.Remove(moved, gen, []string{dir})); err != nil || disk.Gone(dir) {
		t.Errorf("the table of a copy is gone: %v, %v", disk.Gone(dir), err)
	}
}

// TestTablesOfManyNights checks that if each night has a model directory of its own, and all tables
// are on one disk, the search for orphans on that disk, which each night makes, asks each model
// only about its own table.
func TestTablesOfManyNights(t *testing.T) {
	at := t.TempDir()
	asked := 0
	counting := *models
	counting.Needs = func(model, gen string) bool {
		asked++
		return models.Needs(model, gen)
	}
	const nights = 20
	for n := range nights {
		r, _ := place(t, filepath.Join(at, "models", strconv.Itoa(n)), filepath.Join(at, "ssd"))
		r.Close()
	}
	if all, err := counting.Orphans([]string{filepath.Join(at, "ssd")}, nil); err != nil || len(all) > 0 || asked != nights {
		t.Errorf("%d models were asked %d times; %+v, %v", nights, asked, all, err)
	}
}

// TestOrphans checks that a table counts as an orphan once its run no longer writes it and its
// model is gone. It is freed only if it is named explicitly, since the model may be elsewhere.
func TestOrphans(t *testing.T) {
	at := t.TempDir()
	model, ssd := filepath.Join(at, "model"), filepath.Join(at, "ssd")
	r, dir := place(t, model, ssd)
	if err := os.Rename(model, filepath.Join(t.TempDir(), "moved")); err != nil {
		t.Fatal(err)
	}
	if all := orphans(t, ssd); len(all) != 0 {
		t.Errorf("a run writes %+v", all)
	}
	r.Close()
	all := orphans(t, ssd)
	if len(all) != 1 || all[0].Dir != dir || !all[0].Undecided || all[0].MayBeFreed() || all[0].Free(nil) == nil {
		t.Fatalf("%+v", all)
	}
	if named := orphans(t, dir); len(named) != 1 || !named[0].MayBeFreed() || named[0].Free(nil) != nil || !disk.Gone(dir) {
		t.Errorf("%+v", named)
	}
	if err := all[0].Free(nil); err != nil { // a run may delete a table after it was listed
		t.Error(err)
	}
}

// TestListCannotBeRead checks that a table is not deleted as long as it is not known whether
// another model refers to it.
func TestListCannotBeRead(t *testing.T) {
	for _, operation := range []string{"read", "list"} {
		at := t.TempDir()
		first, second := filepath.Join(at, "a", "model"), filepath.Join(at, "a", "copy")
		r, dir := place(t, first, filepath.Join(at, "ssd"))
		r.Close()
		if err := os.CopyFS(second, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		gen := filepath.Join(first, "gen-000001")
		if err := os.Rename(gen, gen+"-deleted"); err != nil {
			t.Fatal(err)
		}
		failing := map[string]string{"read": filepath.Join(second, "gen-000001", PlacesName), "list": filepath.Dir(first)}[operation]
		diskfault.Inject(func(op, path string) error {
			if op == operation && path == failing {
				return unix.EMFILE
			}
			return nil
		})
		err := models.Remove(first, "gen-000001", []string{dir})
		_, orphansErr := models.Orphans([]string{filepath.Join(at, "ssd")}, nil)
		diskfault.Inject(nil)
		if !errors.Is(err, unix.EMFILE) || !errors.Is(orphansErr, unix.EMFILE) || disk.Gone(dir) {
			t.Errorf("%s fails: %v and %v, the table is gone: %v", operation, err, orphansErr, disk.Gone(dir))
		}
		if err := models.Remove(first, "gen-000001", []string{dir}); err != nil || disk.Gone(dir) {
			t.Errorf("%s fails no more: %v, the table is gone: %v", operation, err, disk.Gone(dir))
		}
	}
}
