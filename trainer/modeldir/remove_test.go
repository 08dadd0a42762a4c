package modeldir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aibox/internal/disk"
)

// Remove deletes a model and its table elsewhere, and nothing of any other model.
func TestRemove(t *testing.T) {
	at := t.TempDir()
	ssds := []string{filepath.Join(at, "a"), filepath.Join(at, "b")}
	dir, other := filepath.Join(at, "model"), filepath.Join(at, "other")
	placed(t, dir, ssds, true)
	stays := placed(t, other, ssds, true)
	placed(t, dir, ssds, false) // of a run that died
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("while a run writes it: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); err == nil {
		t.Error("a model was deleted while it was read")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is there
		if err := Remove(dir); err != nil {
			t.Error(err)
		}
	}
	for i, ssd := range ssds {
		if names := entries(t, ssd); len(names) != 1 || names[0] != filepath.Base(stays[i]) {
			t.Errorf("%s holds %v", ssd, names)
		}
	}
	if names := entries(t, at); len(names) != 3 || !disk.Gone(dir) {
		t.Errorf("%v", names)
	}
}

// TestRemoveWhereNotMounted checks that a generation with a part of its table on a file system that
// is not mounted stays until it is mounted, so that the part is then deleted, too.
func TestRemoveWhereNotMounted(t *testing.T) {
	at := disk.RealDir(t.TempDir())
	dir, away := filepath.Join(at, "model"), filepath.Join(at, "away")
	dirs := placed(t, dir, []string{filepath.Join(at, "a"), filepath.Join(at, "b")}, false) // of a run that died
	create := func(leftovers, left int) {
		t.Helper()
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Leftovers()) != leftovers {
			t.Errorf("it could not delete %v", w.Leftovers())
		}
		if err := w.Close(); err != nil || len(names(t, dir)) != left {
			t.Errorf("%v; %v are left", err, names(t, dir))
		}
	}
	defer func(was string) { disk.Fstab = was }(disk.Fstab)
	disk.Fstab = filepath.Join(at, "fstab")
	if err := errors.Join(os.Rename(dirs[0], away), os.WriteFile(disk.Fstab, []byte("UUID=1 "+filepath.Dir(dirs[0])+" xfs nofail\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	create(1, 1)
	if err := errors.Join(os.Rename(away, dirs[0]), os.Remove(disk.Fstab)); err != nil {
		t.Fatal(err)
	}
	create(0, 0)
	for _, d := range dirs {
		if !disk.Gone(d) {
			t.Errorf("%s is left", d)
		}
	}
}
