package modeldir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aibox/sparsetable"
	"aibox/trainer/modeldir/internal/outside"
)

// placed commits a model whose table is in directories of its own, or leaves a generation as a run
// does that dies.
func placed(t *testing.T, dir string, ssds []string, commit bool) []string {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := w.PlaceTable(ssds)
	if err != nil {
		t.Fatal(err)
	}
	if !commit {
		w.lock.file.Close()
		return dirs
	}
	defer w.Close()
	m := fillPlaced(t, w, dirs)
	if err := w.Commit(m, nil, nil); err != nil {
		t.Fatal(err)
	}
	return dirs
}

// fillPlaced writes everything that a commit of a model needs whose table is in dirs.
func fillPlaced(t *testing.T, w *Writer, dirs []string) *Manifest {
	t.Helper()
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{
		Kind: sparsetable.KindSSD, Layout: sparsetable.Layout{ValueDim: 1}, MemoryBytes: 32 << 20, SSD: sparsetable.SSDOptions{Dirs: dirs},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	m := &Manifest{Dense: DenseName(5), Step: 5, KeptShare: 1}
	if err := w.SaveDense(m.Dense, nil); err != nil {
		t.Fatal(err)
	}
	p, err := table.Snapshot(t.Context(), m.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	m.TableSnapshot = info.ID
	return m
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// TestTableDirs checks that a generation's directories on SSDs are made and deleted with it.
func TestTableDirs(t *testing.T) {
	at := t.TempDir()
	dir := filepath.Join(at, "model")
	ssds := []string{filepath.Join(at, "a"), filepath.Join(at, "new", "b")}
	first := placed(t, dir, ssds, true)
	if len(first) != 2 || filepath.Dir(first[0]) != ssds[0] || filepath.Dir(first[1]) != ssds[1] || !strings.HasPrefix(filepath.Base(first[0]), "model-gen-000001-") {
		t.Fatalf("placed in %v", first)
	}
	open := func() (sparsetable.Table, error) {
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return m.OpenTable(t.Context(), sparsetable.Options{MemoryBytes: 32 << 20})
	}
	table, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if s := table.Stats(); s.Kind != sparsetable.KindSSD || s.BudgetBytes != 32<<20 {
		t.Errorf("%+v", s)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}

	// What a dead run left is deleted by the next, the earlier model's by the
	// commit; another model's stays.
	other := placed(t, filepath.Join(at, "other", "model"), ssds, true)
	dead := placed(t, dir, ssds, false)
	second := placed(t, dir, ssds, true)
	for i, ssd := range ssds {
		names := entries(t, ssd)
		want := []string{filepath.Base(second[i]), filepath.Base(other[i])}
		if len(names) != 2 || !(names[0] == want[0] || names[0] == want[1]) || names[0] == filepath.Base(dead[i]) {
			t.Errorf("%s holds %v, want %v", ssd, names, want)
		}
	}

	// A missing disk is told from a damaged model.
	if err := os.Rename(ssds[1], ssds[1]+"x"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), second[1]) {
		t.Errorf("without a directory: %v", err)
	}
}

// TestTableOfMovedModelStays moves a model to an unknown place, and makes a new one with the same
// number where it was. The table of the moved model must stay.
func TestTableOfMovedModelStays(t *testing.T) {
	at := t.TempDir()
	dir, away, ssd := filepath.Join(at, "model"), filepath.Join(at, "far", "away"), filepath.Join(at, "ssd")
	placed(t, dir, []string{ssd}, true)
	if err := errors.Join(os.Mkdir(filepath.Dir(away), 0o755), os.Rename(dir, away)); err != nil {
		t.Fatal(err)
	}
	placed(t, dir, []string{ssd}, true)
	m, err := Open(away)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	table, err := m.OpenTable(t.Context(), sparsetable.Options{MemoryBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTableDirsAreOwn checks that one directory cannot be given by two names, and that lists that
// name other directories than those of the generation are refused.
func TestTableDirsAreOwn(t *testing.T) {
	at := t.TempDir()
	link := filepath.Join(at, "link")
	if err := os.Symlink(at, link); err != nil {
		t.Fatal(err)
	}
	w, err := Create(filepath.Join(at, "model"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.PlaceTable([]string{at, link}); err == nil || !strings.Contains(err.Error(), "the same directory") {
		t.Errorf("two names of one directory: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, at); len(names) != 1 {
		t.Errorf("what failed leaves %v", names)
	}

	precious := filepath.Join(at, "precious")
	if err := os.Mkdir(precious, 0o755); err != nil {
		t.Fatal(err)
	}
	gen := filepath.Join(at, "model", "gen-000009")
	if err := os.MkdirAll(gen, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{
		`{"dirs": ["` + precious + `"]}`,
		`{"dirs": ["` + at + `/x-gen-000008-01234567"]}`,
		`{"dirs": ["x-gen-000009-01234567"]}`,
		`{"dirs": ["` + at + `/x-gen-000009-01234567/../precious"]}`,
		`{"dirs": []}`, `{"dirs": "`,
	} {
		if err := os.WriteFile(filepath.Join(gen, outside.PlacesName), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := Create(filepath.Join(at, "model"))
		if err != nil {
			t.Fatal(err)
		}
		var bad *CorruptionError
		if err := errors.Join(w.Leftovers()...); !errors.As(err, &bad) || !strings.Contains(err.Error(), gen) {
			t.Errorf("%s: %v", list, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(gen); err != nil {
			t.Errorf("%s: the generation: %v", list, err)
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestTableDirsInAFile checks that a directory that cannot be made leaves nothing behind, neither a
// list nor directories on the other SSDs, and that the model directory can be used.
func TestTableDirsInAFile(t *testing.T) {
	at := t.TempDir()
	dir, ssd, file := filepath.Join(at, "model"), filepath.Join(at, "ssd"), filepath.Join(at, "train.tsv")
	if err := os.WriteFile(file, []byte("rows"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{file, filepath.Join(file, "below")} {
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.PlaceTable([]string{ssd, wrong}); !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", wrong, err)
		}
		if _, err := os.Stat(filepath.Join(w.genDir(), outside.PlacesName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the list: %v", wrong, err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: %v", wrong, err)
		}
		if names := entries(t, ssd); len(names) != 0 {
			t.Errorf("%s: the other SSD holds %v", wrong, names)
		}
	}
	placed(t, dir, []string{ssd}, true)
}

// TestUndeletable checks that a dead run's generation that cannot be deleted is kept and reported,
// and deleted by the next run that can. Generations whose directories are gone are deleted.
func TestUndeletable(t *testing.T) {
	at := t.TempDir()
	dir, ssd := filepath.Join(at, "model"), filepath.Join(at, "ssd")
	leftovers := func(want int) error {
		t.Helper()
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		if have := w.Leftovers(); len(have) != want {
			t.Fatalf("%d left over: %v, want %d", len(have), have, want)
		}
		return errors.Join(w.Leftovers()...)
	}
	dead := placed(t, dir, []string{ssd}, false)
	gen := filepath.Join(dir, names(t, dir)[0])

	// The SSD cannot be reached.
	if err := errors.Join(os.Rename(ssd, ssd+"x"), os.Symlink(ssd, ssd)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := leftovers(1); !errors.Is(err, syscall.ELOOP) || !strings.Contains(err.Error(), dead[0]) || !strings.Contains(err.Error(), gen) {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := os.Stat(gen); err != nil {
		t.Errorf("what names the table's directories: %v", err)
	}
	// It is there again.
	if err := errors.Join(os.Remove(ssd), os.Rename(ssd+"x", ssd)); err != nil {
		t.Fatal(err)
	}
	_ = leftovers(0)
	if names := entries(t, ssd); len(names) != 0 {
		t.Errorf("the SSD holds %v", names)
	}

	// A file where the SSD was: the table is gone.
	placed(t, dir, []string{ssd}, false)
	if err := errors.Join(os.RemoveAll(ssd), os.WriteFile(ssd, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_ = leftovers(0)
	if have := names(t, dir); len(have) != 0 {
		t.Errorf("left: %v", have)
	}
}
