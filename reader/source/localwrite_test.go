package source

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aibox/internal/diskfault"
)

// TestDirectoryThatCannotBeSynced: a file whose Close fails after the rename is not visible, unless it
// has replaced another one, which the error says.
func TestDirectoryThatCannotBeSynced(t *testing.T) {
	diskfault.Inject(func(operation, _ string) error {
		if operation == "sync directory" {
			return syscall.EIO
		}
		return nil
	})
	defer diskfault.Inject(nil)
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, replaced := range map[string]bool{filepath.Join(dir, "new"): false, old: true} {
		w, err := New(Options{}).Create(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("text")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrReplaced) != replaced {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := os.Stat(path); (err == nil) != replaced {
			t.Errorf("%s: %v", path, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
