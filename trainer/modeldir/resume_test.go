package modeldir

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// interrupt makes a generation in dir whose run was interrupted.
func interrupt(t *testing.T, dir string, tableDirs []string, resume string) (gen string, table []string) {
	t.Helper()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if table, err = w.PlaceTable(tableDirs); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.SaveDense(DenseName(1), nil), w.SaveResume([]byte(resume))); err != nil {
		t.Fatal(err)
	}
	w.Suspend()
	gen = w.genDir()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return gen, table
}

// TestContinue checks that a run gets the generation of an interrupted run if it accepts it, and
// that the generation is deleted otherwise.
func TestContinue(t *testing.T) {
	dir, at := filepath.Join(t.TempDir(), "model"), t.TempDir()
	const resume = `{"a":"<b>"}` // with characters that JSON may escape
	gen, table := interrupt(t, dir, []string{at}, resume)
	var seen []byte
	w, err := Continue(dir, func(data []byte) (bool, error) { seen = data; return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	if w.genDir() != gen || !bytes.Equal(w.Resume(), seen) || string(seen) != `{"a":"\u003cb\u003e"}` {
		t.Errorf("the run goes on in %s with %s, want %s", w.genDir(), w.Resume(), gen)
	}
	if dirs, err := w.TakeTable(); err != nil || len(dirs) != 1 || dirs[0] != table[0] {
		t.Errorf("the table is in %v, %v; want %v", dirs, err, table)
	}
	if orphans, err := Orphans(table, nil); err != nil || len(orphans) != 0 {
		t.Errorf("the table's directory is not locked: %v, %v", orphans, err)
	}
	w.Suspend()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("another run")
	if _, err := Continue(dir, func([]byte) (bool, error) { return false, fault }); !errors.Is(err, fault) || disk.Gone(filepath.Join(gen, resumeName)) {
		t.Errorf("after a failure nothing may be deleted: %v", err)
	}
	w, err = Continue(dir, func([]byte) (bool, error) { return false, nil })
	if err != nil {
		t.Fatal(err)
	}
	if w.Resume() != nil || w.genDir() == gen || !disk.Gone(gen) || !disk.Gone(table[0]) {
		t.Errorf("a run that was not accepted is left: %s", gen)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedTableStays checks that the directory of an interrupted run's table elsewhere is no
// orphan, and that other runs that use the same SSD do not touch it.
func TestInterruptedTableStays(t *testing.T) {
	at := t.TempDir()
	dir := filepath.Join(t.TempDir(), "model")
	gen, table := interrupt(t, dir, []string{at}, `{}`)
	other, err := Create(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.PlaceTable([]string{at}); err != nil {
		t.Fatal(err)
	}
	if orphans, err := Orphans([]string{at}, nil); err != nil || len(orphans) != 0 || len(other.Freed()) != 0 || disk.Gone(table[0]) {
		t.Errorf("orphans %+v, %v; freed %+v", orphans, err, other.Freed())
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	// Without RESUME.json it is what a killed run has left.
	if err := os.Remove(filepath.Join(gen, resumeName)); err != nil {
		t.Fatal(err)
	}
	if orphans, err := Orphans([]string{at}, nil); err != nil || len(orphans) != 1 {
		t.Errorf("orphans %+v, %v", orphans, err)
	}
}

// TestDamagedResume checks that a damaged RESUME.json is an error of Interrupted, and that no run
// resumes from it.
func TestDamagedResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	gen, _ := interrupt(t, dir, nil, `{"step":12345}`)
	path := filepath.Join(gen, resumeName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 4
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		var damage *CorruptionError
		if resume, err := Interrupted(dir); !errors.As(err, &damage) {
			t.Fatalf("byte %d: %s, %v", i, resume, err)
		}
	}
	w, err := Continue(dir, func([]byte) (bool, error) { t.Error("a damaged file is offered"); return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCommittedModelHasNoResume checks that the commit deletes RESUME.json, or the next run if the
// process died before.
func TestCommittedModelHasNoResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	gen, _ := interrupt(t, dir, nil, `{}`)
	w, err := Continue(dir, func([]byte) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Commit(&Manifest{Dense: DenseName(1)}, nil, nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(gen, resumeName)
	if !disk.Gone(path) {
		t.Error("the committed model has RESUME.json")
	}
	if err := os.WriteFile(path, []byte(`{}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if resume, err := Interrupted(dir); err != nil || resume != nil {
		t.Errorf("a committed model counts as interrupted: %s, %v", resume, err)
	}
	w, err = Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !disk.Gone(path) || disk.Gone(gen) {
		t.Error("the next run has not deleted RESUME.json, or has deleted the model")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveOtherDense deletes dense files to which nothing refers.
func TestRemoveOtherDense(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for step := range int64(3) {
		if err := w.SaveDense(DenseName(step), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.genDir(), DenseName(1)+".tmp"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.RemoveOtherDense(DenseName(1), DenseName(7))
	left, err := filepath.Glob(filepath.Join(w.genDir(), "dense-*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != DenseName(1) {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestDirectoryLeftOut checks what is left in a directory that an interrupted run stopped using
// because its disk had failed. When the disk works again, it is deleted by the next run that makes
// a table there, or else with the generation.
func TestDirectoryLeftOut(t *testing.T) {
	t.Cleanup(func() { diskfault.Inject(nil) })
	for _, there := range []bool{true, false} { // the next run makes a table there
		at := t.TempDir()
		dir, ssds := filepath.Join(at, "model"), []string{filepath.Join(at, "a"), filepath.Join(at, "b")}
		_, table := interrupt(t, dir, ssds, "{}")
		diskfault.Inject(func(_, path string) error {
			if disk.Innermost(ssds[:1], path) == 0 {
				return unix.EROFS
			}
			return nil
		})
		w, err := Continue(dir, func([]byte) (bool, error) { return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		usable, _, err := w.RecreateTableDirs()
		if err != nil || !slices.Equal(usable, table[1:]) {
			t.Fatalf("%v can be used, want %v: %v", usable, table[1:], err)
		}
		if err := errors.Join(w.KeepTableDirs(usable), commit(w, &Manifest{Dense: DenseName(1), Epoch: 1, Step: 1}, 1, 1), w.Close()); err != nil {
			t.Fatal(err)
		}
		diskfault.Inject(nil)
		if found, err := Orphans(ssds, nil); err != nil || len(found) != 1 || found[0].Dir != table[0] || !found[0].MayBeFreed() || !strings.Contains(found[0].Reason, "went on without it") {
			t.Errorf("orphans %+v, %v; want %s", found, err, table[0])
		}
		if w, err = Create(dir); err != nil {
			t.Fatal(err)
		}
		if there {
			if _, err := w.PlaceTable(ssds); err != nil {
				t.Fatal(err)
			}
		}
		if disk.Gone(table[0]) != there || disk.Gone(table[1]) {
			t.Errorf("the next run has a table there: %v; of the model before there are %v and %v", there, entries(t, ssds[0]), entries(t, ssds[1]))
		}
		if err := errors.Join(commit(w, &Manifest{Dense: DenseName(2), Epoch: 1, Step: 2}, 2, 1), w.Close()); err != nil {
			t.Fatal(err)
		}
		if !disk.Gone(table[0]) || !disk.Gone(table[1]) {
			t.Errorf("of a model that is not kept there are %v and %v", entries(t, ssds[0]), entries(t, ssds[1]))
		}
	}
}

// TestArrivingOfNothing checks that files of an interrupted run that was discarded but could not be
// deleted no longer count as arriving.
func TestArrivingOfNothing(t *testing.T) {
	at := t.TempDir()
	dir := filepath.Join(at, "model")
	gen, table := interrupt(t, dir, []string{filepath.Join(at, "ssd")}, "{}")
	if err := os.WriteFile(ArrivingRecords(table)[0], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if all := Arriving(dir); len(all) != 1 || all[0].Generation != filepath.Base(gen) {
		t.Errorf("of an interrupted run: %+v", all)
	}
	if err := endGeneration(gen); err != nil {
		t.Fatal(err)
	}
	if all := Arriving(dir); len(all) != 0 {
		t.Errorf("of one that was given up: %+v", all)
	}
}
