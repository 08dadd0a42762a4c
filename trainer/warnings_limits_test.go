package trainer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWarnOfFewFiles: a job says at its beginning that few files may be open, and how to raise that limit.
func TestWarnOfFewFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[uint64]bool{200: true, 300: false} {
		limited := unix.Rlimit{Cur: limit, Max: before.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limited); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		warnOfLimits(slog.New(slog.NewTextHandler(&log, nil)))
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "LimitNOFILE") != want {
			t.Errorf("a limit of %d files: want a warning %v: %s", limit, want, log.String())
		}
	}
}
