package trainer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aibox/reader/source"
	"aibox/trainer/internal/testjobs"
)

// TestInputIsListedOnce checks that files that arrive while a job runs belong to none of its epochs
// and evaluations. A file that changes or vanishes ends the job with an error that names the file
// and says whether the snapshot can still be used.
func TestInputIsListedOnce(t *testing.T) {
	text, err := os.ReadFile(job(t, "lr").Data.Eval[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		kind   error // nil: the job goes on
		change func(dir string) error
	}{
		{"a file arrives", nil, func(dir string) error { return os.WriteFile(filepath.Join(dir, "z.tsv"), text, 0o600) }},
		{"a file vanishes", source.ErrNotFound, func(dir string) error { return os.Remove(filepath.Join(dir, "b.tsv")) }},
		{"a file is written again", source.ErrChanged, func(dir string) error {
			path := filepath.Join(dir, "b.tsv")
			later := time.Now().Add(time.Second)
			return errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, later, later))
		}},
		{"an empty file is filled", source.ErrChanged, func(dir string) error {
			path := filepath.Join(dir, "empty.tsv")
			later := time.Now().Add(time.Second)
			return errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, later, later))
		}},
	} {
		j := job(t, "lr", "training.epochs=2", "snapshots.every=1 pass")
		dir := t.TempDir()
		for _, name := range []string{"a.tsv", "b.tsv", "empty.tsv"} {
			data := text
			if name == "empty.tsv" {
				data = nil
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j.Data.Train, j.Data.Eval = []string{dir + "/*.tsv"}, []string{dir}
		done := false
		o := quiet
		o.afterPass = func(context.Context, *run) error {
			if done {
				return nil
			}
			done = true
			return c.change(dir)
		}
		s, err := Train(t.Context(), j, o)
		switch {
		case c.kind != nil:
			var failed *source.Error
			if !errors.Is(err, c.kind) || !errors.As(err, &failed) || !strings.Contains(err.Error(), dir) ||
				!strings.Contains(err.Error(), "when that file is what it was, with its size and modification time, the same command resumes") {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		default:
			for _, e := range s.Epochs {
				if e.Examples != s.Epochs[0].Examples || e.Eval.Examples != e.Examples || e.Examples != 2*testjobs.EvalRows {
					t.Errorf("%s: epoch %d has %d examples and evaluates %d", c.name, e.Epoch, e.Examples, e.Eval.Examples)
				}
			}
		}
	}
}
