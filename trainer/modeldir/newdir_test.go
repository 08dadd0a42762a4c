package modeldir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestNothingLeftOfNewDirectory checks that a run that leaves nothing in a directory that it made
// removes the directory with its lock, and that a directory that existed before stays.
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

// TestOneWriterOfNewDirectories checks that of many runs that make and remove a directory at the
// same time, no two hold its lock at once.
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

// TestCreateBehindALink checks that a model directory may be a symbolic link to a directory. If the
// link leads nowhere, for example because a file system is not mounted, the error says so.
func TestCreateBehindALink(t *testing.T) {
	at := t.TempDir()
	dir, link := filepath.Join(at, "model"), filepath.Join(at, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(link); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), link+" is a symbolic link to "+dir+", which does not exist: is its file system mounted?") {
		t.Errorf("a link to nowhere: %v", err)
	}
	night(t, dir, 10, 2)
	night(t, link, 20, 2)
	if have := numbers(t, dir); have != "1:10 2:20*" {
		t.Errorf("there are %s", have)
	}
}
