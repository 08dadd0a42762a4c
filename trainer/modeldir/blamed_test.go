package modeldir

import (
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBlamed checks that if one directory of a table lies in another, the failure of a file is
// attributed to the disk of the inner directory.
func TestBlamed(t *testing.T) {
	for path, want := range map[string]string{"/data/x": "/data", "/data/ssd2/x": "/data/ssd2", "/data/ssd22/x": "/data"} {
		err := &fs.PathError{Op: "read", Path: path, Err: unix.EIO}
		if lost := blamed([]string{"/data", "/data/ssd2"}, err); len(lost) != 1 || lost[0].Dir != want {
			t.Errorf("%s: %v, want %s", path, lost, want)
		}
	}
}
