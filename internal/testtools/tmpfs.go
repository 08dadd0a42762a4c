package testtools

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Tmpfs mounts a file system in memory with these options of mount(8), such as size=64k, until the
// test ends. The test is skipped where none can be mounted.
func Tmpfs(t testing.TB, options string) (at string) {
	t.Helper()
	at = t.TempDir()
	if err := unix.Mount("none", at, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIP: a file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}
