package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
)

// TestRestoreAgain checks that the command that has restored a model succeeds again, also on the
// machine where the model was made, and if files of it are missing in the remote directory. It
// fails if there is a newer model, and if the directory has another model. A model that has lost
// its table is restored again, and stays as it is if that is impossible.
func TestRestoreAgain(t *testing.T) {
	far, home, to := filepath.Join(t.TempDir(), "far@7"), model(t), model(t) // its name ends as that of a generation does
	o := RestoreOptions{From: far, To: to, Options: quiet}
	publishNext := func() {
		t.Helper()
		makeModel(t, home, far)
		if err := publish(t, home); err != nil {
			t.Fatal(err)
		}
	}
	publishNext()
	restore := func(to string, already bool) {
		t.Helper()
		o := o
		o.To = to
		out, err := Restore(t.Context(), o)
		if err != nil || out.Already != already || (out.Moved == 0) != already || out.Generation == 0 || !strings.HasPrefix(out.From, far+"@") {
			t.Errorf("%+v, %v", out, err)
		}
	}
	refuse := func(o RestoreOptions, kind errkind.Kind, says string) {
		t.Helper()
		if out, err := Restore(t.Context(), o); errkind.Of(t.Context(), err) != kind || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v, %v, want %q", out, err, says)
		}
	}
	restore(to, false)
	restore(to, true)
	restore(home, true)
	publishNext()
	refuse(o, errkind.Usage, modeldir.ErrHasModel.Error())
	o.Number = 1
	restore(to, true)
	other := o
	other.To = model(t)
	makeModel(t, other.To, "")
	refuse(other, errkind.Usage, modeldir.ErrHasModel.Error())
	loseTable := func(of string) {
		t.Helper()
		if err := removeAllOf(filepath.Join(of, "gen-*", "table", "*")); err != nil {
			t.Fatal(err)
		}
	}
	loseTable(to)
	restore(to, false)
	restore(to, true)
	if err := removeAllOf(filepath.Join(far, "objects", "*")); err != nil {
		t.Fatal(err)
	}
	restore(to, true)
	o.Number = 0
	restore(home, true)
	loseTable(to)
	o.Number = 1
	refuse(o, errkind.IO, "objects")
	if m, err := modeldir.Open(to); err != nil {
		t.Errorf("what is left is gone: %v", err)
	} else if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestoreDamagedAgain checks that a model with a damaged or missing file that does not belong
// to its table is restored again. If MODEL.json is damaged, the error says what to do.
func TestRestoreDamagedAgain(t *testing.T) {
	far, home, to := filepath.Join(t.TempDir(), "far"), model(t), model(t)
	makeModel(t, home, far)
	if err := publish(t, home); err != nil {
		t.Fatal(err)
	}
	o := RestoreOptions{From: far, To: to, Options: quiet}
	if _, err := Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"job.yaml", "statistics.json", modeldir.DenseName(5)} {
		for _, damage := range []func(string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("damaged"), 0o644) }} {
			m, err := modeldir.Open(to)
			if err != nil {
				t.Fatal(name, err)
			}
			if err := errors.Join(m.Close(), damage(filepath.Join(to, m.Generation, name))); err != nil {
				t.Fatal(err)
			}
			if out, err := Restore(t.Context(), o); err != nil || out.Already {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(to, modeldir.ManifestName), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), o); !errors.Is(err, modeldir.ErrHasModel) || !strings.Contains(err.Error(), "rollback") {
		t.Error(err)
	}
}

// removeAllOf removes the files that match a pattern.
func removeAllOf(pattern string) error {
	names, err := filepath.Glob(pattern)
	if len(names) == 0 {
		err = errors.Join(err, errors.New("nothing matches "+pattern))
	}
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
