package modeldir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// TestNothingLeftOfNewDirectory: a run that leaves nothing in a directory which it made
// removes it, with its lock; one that existed stays.
func TestNothingLeftOfNewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "model")
	for range 2 {
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the directory is left: %v", err)
		}
	}
	if err := WriteReport(dir, "x.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "x.json")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		t.Errorf("a directory that was there before: %v", err)
	}
}

// TestOneWriterOfNewDirectories: of many runs that make and remove a directory at the
// same time, never two hold its lock.
func TestOneWriterOfNewDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	var inside sync.Mutex
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			for range 200 {
				l, err := makeAndLock(dir)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() {
					t.Error("two runs hold the lock")
					return
				}
				runtime.Gosched()
				inside.Unlock()
				if err := l.Close(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	runs.Wait()
}
