package blockio_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"aibox/sparsetable/internal/blockio"
)

// TestDescriptorLimit checks the error when a process has no file descriptor left for a file or a
// directory: it says so, how many the process may have, and what to do. With a higher limit, the
// file can be opened.
func TestDescriptorLimit(t *testing.T) {
	d, err := blockio.Open(t.Context(), t.TempDir(), blockio.Options{Direct: blockio.Off})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 1, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	_, err = d.Create("a.bucket")
	syncing := d.SyncDir()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{err, syncing} {
		if !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), "may have 1 files open") || !strings.Contains(err.Error(), "LimitNOFILE") {
			t.Errorf("error %v, want one that names the limit and how to raise it", err)
		}
	}
	f, err := d.Create("a.bucket")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
