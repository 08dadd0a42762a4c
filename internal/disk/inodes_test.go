package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/internal/testtools"
)

// TestInodesLeft: of a file system that is full, files and bytes are told apart.
func TestInodesLeft(t *testing.T) {
	for options, want := range map[string]string{"nr_inodes=4,size=1m": "has 0 of 4 inodes left", "nr_inodes=1000,size=64k": ""} {
		at := testtools.Tmpfs(t, options)
		var err error
		for i := 0; err == nil; i++ {
			err = os.WriteFile(filepath.Join(at, fmt.Sprint(i)), make([]byte, 100), 0o644)
		}
		if got := InodesLeft(fmt.Errorf("made: %w", err)); want != "" && !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %v: %q", options, err, got)
		}
		link := filepath.Join(t.TempDir(), "stdout")
		if err := os.Symlink(filepath.Join(at, "0"), link); err != nil {
			t.Fatal(err)
		}
		if got := InodesLeft(&os.PathError{Op: "write", Path: link, Err: unix.ENOSPC}); want != "" && !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s, by a link: %q", options, got)
		}
	}
	for _, err := range []error{&os.PathError{Op: "open", Path: "/", Err: unix.EIO}, &os.PathError{Op: "write", Path: "/dev/full", Err: unix.ENOSPC}} {
		if got := InodesLeft(err); got != "" {
			t.Errorf("%v: %s", err, got)
		}
	}
}
