package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFree: free space is counted in the units of the file system, not in those of its transfers.
func TestFree(t *testing.T) {
	if free, err := Free(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("%d bytes, %v", free, err)
	}
	if _, err := Free(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for want, st := range map[int64]unix.Statfs_t{
		40 << 10: {Bavail: 10, Bsize: 1 << 20, Frsize: 4 << 10},
		10 << 20: {Bavail: 10, Bsize: 1 << 20},
	} {
		if got := freeOf(&st); got != want {
			t.Errorf("%d bytes, want %d", got, want)
		}
	}
}
