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
