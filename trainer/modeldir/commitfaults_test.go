package modeldir

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/diskfault"
)

// TestCommitFails makes each operation on disk of a commit fail, one after the other. Afterwards
// one of the two models must exist, complete, and the next run must be able to make another one.
func TestCommitFails(t *testing.T) {
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), "model")
		save(t, dir, 1)
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := fill(t, w, 2)
		operations := 0
		diskfault.Inject(func(string, string) error {
			if operations++; operations == n {
				return unix.EIO
			}
			return nil
		})
		failure := w.Commit(m, []byte("name: x\n"), []byte("{}"))
		diskfault.Inject(nil)
		committed := w.Committed()
		if failure == nil && !committed {
			t.Errorf("operation %d: the commit has succeeded, and there is none", n)
		}
		if err := w.Close(); err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		want := float32(1)
		if committed {
			want = 2
		}
		if got := value(t, dir); got != want {
			t.Errorf("operation %d fails with %v: the model has %g, want %g", n, failure, got, want)
		}
		save(t, dir, 3)
		if got := value(t, dir); got != 3 {
			t.Errorf("operation %d: the next model has %g", n, got)
		}
		if operations < n {
			return
		}
		if failure != nil && !errors.Is(failure, unix.EIO) {
			t.Errorf("operation %d: the error is %v", n, failure)
		}
	}
}

// TestRollbackFails makes each change on disk of a rollback fail, one after the other. What
// Rollback returns must say which model the directory has. If it has another one now, only that it
// may not be durable is an error, and naming it again must complete the rollback.
func TestRollbackFails(t *testing.T) {
	undurable := 0
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), "model")
		for v := range 3 {
			night(t, dir, float32(v+1), 3)
		}
		changes := 0
		diskfault.Inject(func(operation, _ string) error {
			if operation == "read" {
				return nil
			}
			if changes++; changes == n {
				return unix.EIO
			}
			return nil
		})
		out, failure := Rollback(dir, 0)
		diskfault.Inject(nil)
		want := "1:1 2:2 3:3*"
		if out.To.Published {
			want = "1:1 2:2* 3:3"
		}
		if have := numbers(t, dir); have != want || failure == nil && !out.To.Published || failure != nil && !errors.Is(failure, unix.EIO) {
			t.Errorf("change %d: %s, want %s; the rollback returns %v", n, have, want, failure)
		}
		if out.To.Published {
			if failure != nil {
				undurable++
			}
			if n <= changes && failure == nil && len(out.Leftovers) == 0 {
				t.Errorf("change %d: its failure is not reported", n)
			}
			if again, err := Rollback(dir, 2); err != nil || len(again.Leftovers) > 0 || again.From.Number != 2 {
				t.Errorf("change %d, again: %+v, %v", n, again, err)
			}
			if have := numbers(t, dir); have != want {
				t.Errorf("change %d, again: %s, want %s", n, have, want)
			}
			wantReports(t, dir, 2)
		}
		if changes < n {
			break
		}
	}
	if undurable != 1 { // the directory could not be synced
		t.Errorf("a rollback is not durable after %d failures, want 1", undurable)
	}
}
