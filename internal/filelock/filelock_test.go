package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func take(t *testing.T, path string, kind Kind) *os.File {
	t.Helper()
	f, err := Open(path, os.O_CREATE|os.O_RDWR, 0o644, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestExclusion: shared locks exclude exclusive ones alone, until their files are closed.
func TestExclusion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	if _, err := Open(path, os.O_RDWR, 0, Shared); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	tries := func(kind Kind, want error) {
		t.Helper()
		f, err := Open(path, os.O_RDONLY, 0, kind)
		if !errors.Is(err, want) {
			t.Errorf("kind %d: %v, want %v", kind, err, want)
		}
		_ = f.Close()
	}
	reads := take(t, path, Shared)
	tries(Shared, nil)
	tries(Exclusive, ErrHeld)
	_ = reads.Close()
	writes := take(t, path, Exclusive)
	tries(Shared, ErrHeld)
	tries(Exclusive, ErrHeld)
	_ = writes.Close()
	tries(Exclusive, nil)
}

// TestDeleted: who waits for the lock of a file that is deleted meanwhile gets that of the
// file that is at the path by then, which excludes others.
func TestDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	first := take(t, path, Exclusive)
	waits := make(chan *os.File)
	go func() {
		f, err := Wait(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			t.Error(err)
		}
		waits <- f
	}()
	time.Sleep(20 * time.Millisecond) // it has opened the file by now
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	second := <-waits
	defer second.Close()
	if _, err := Open(path, os.O_RDONLY, 0, Shared); !errors.Is(err, ErrHeld) {
		t.Errorf("the file at the path: %v", err)
	}
}
