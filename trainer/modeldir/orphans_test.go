package modeldir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOrphansAreListedByReaders checks that a user who may only read the directories of tables and
// models can list the tables that no model needs, and sees that a run writes a table, or that a
// process reads a model.
func TestOrphansAreListedByReaders(t *testing.T) {
	at := t.TempDir()
	dir := filepath.Join(at, "m-gen-000001-01234567")
	name := filepath.Join(dir, lockName)
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(name, nil, 0o444), os.Chmod(filepath.Dir(at), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	asReader := func(do func()) {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // what follows is true of this thread alone
			if err := unix.Setfsuid(65534); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := unix.Setfsuid(0); err != nil {
					t.Fatal(err) // the thread ends with the test
				}
				runtime.UnlockOSThread()
			}()
		}
		if _, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			t.Fatal("the test may write")
		}
		do()
	}
	for _, c := range []struct {
		how     int // the lock is held
		orphans int
		fault   error // of lockRemoving
	}{{unix.LOCK_UN, 1, nil}, {unix.LOCK_SH, 1, errRead}, {unix.LOCK_EX, 0, errRead}} {
		if err := unix.Flock(int(lock.Fd()), c.how); err != nil {
			t.Fatal(err)
		}
		asReader(func() {
			if found, err := Orphans([]string{at}, nil); err != nil || len(found) != c.orphans {
				t.Errorf("lock %d: %+v, %v", c.how, found, err)
			}
			held, err := lockRemoving(dir)
			if err != c.fault || (held == nil) != (c.fault != nil) {
				t.Errorf("lock %d: %v, %v", c.how, held, err)
			}
			if held != nil {
				held.Close()
			}
		})
	}
}
