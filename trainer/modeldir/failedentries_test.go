package modeldir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// TestFailedEntries checks that an entry of sparse_table.dirs counts as failed if its disk does not
// answer or its file system is read-only, but not if the user can correct what is wrong with it.
func TestFailedEntries(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	entries := []string{filepath.Join(broken, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "missing"), filepath.Join(broken, "new", "2026-11-21")}
	for _, d := range entries[:2] {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { diskfault.Inject(nil) })
	for _, c := range []struct {
		name   string
		err    error // of what is done on the disk of the first and the last entry
		failed bool
	}{
		{"nothing fails", nil, false},
		{"a broken disk", unix.EIO, true},
		{"a disk that was unplugged", unix.ENODEV, true},
		{"no space", unix.ENOSPC, false},
		{"no permission", unix.EACCES, false},
		{"read-only", unix.EROFS, true},
	} {
		diskfault.Inject(func(_, path string) error {
			if strings.HasPrefix(path, broken) {
				return c.err
			}
			return nil
		})
		failed := FailedEntries(entries)
		if (len(failed) > 0) != c.failed || c.failed && (len(failed) != 2 || failed[0].Dir != entries[0] || failed[1].Dir != entries[3]) {
			t.Errorf("%s: %+v", c.name, failed)
		}
		if c.failed && strings.Contains(failed[0].Reason, entries[0]) {
			t.Errorf("%s: the reason repeats the path: %s", c.name, failed[0].Reason)
		}
		for i, f := range failed {
			if missing := strings.Contains(f.Reason, "it does not exist, and "+broken+", where it would be created, cannot be written"); missing != (i == 1) {
				t.Errorf("%s: %s: the reason says that it does not exist, or does not: %s", c.name, f.Dir, f.Reason)
			}
		}
	}
	diskfault.Inject(nil)
	defer func(was string) { disk.Fstab = was }(disk.Fstab)
	disk.Fstab = filepath.Join(dir, "fstab")
	if err := os.WriteFile(disk.Fstab, []byte("UUID=1 "+disk.RealDir(entries[1])+" xfs nofail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if failed := FailedEntries(entries); len(failed) != 1 || failed[0].Dir != entries[1] {
		t.Errorf("one that is not mounted: %+v", failed)
	}
	if left, err := os.ReadDir(entries[1]); err != nil || len(left) > 0 {
		t.Errorf("the probe left %v, %v", left, err)
	}
	if !disk.Gone(entries[2]) || !disk.Gone(filepath.Dir(entries[3])) {
		t.Error("an entry that is missing was made")
	}
}

// TestPlacesAreCheckedAtOnce checks that jobs that share an entry can check it at the same time.
func TestPlacesAreCheckedAtOnce(t *testing.T) {
	dir := t.TempDir()
	taken := false
	disk.BeforeChange = func(operation, path string) {
		if operation == "rename" && !taken { // another one has got so far
			taken = true
			if err := os.Remove(path + ".tmp"); err != nil {
				t.Error(err)
			}
		}
	}
	defer func() { disk.BeforeChange = func(string, string) {} }()
	if err := CheckPlaces([]string{dir}); err != nil || !taken {
		t.Error(err)
	}
}
