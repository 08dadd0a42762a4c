package modeldir

import (
	"errors"
	"path/filepath"
	"testing"

	"aibox/internal/disk"
)

// Remove deletes a model and its table elsewhere, and nothing of another model.
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
