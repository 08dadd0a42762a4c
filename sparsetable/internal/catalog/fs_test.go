package catalog

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSyncDir checks that a file system that cannot sync directories, such as /proc, causes no
// error.
func TestSyncDir(t *testing.T) {
	log, synced := newLogger("cat", slog.New(slog.DiscardHandler)), make(chan error, 1)
	go func() { synced <- pebbleFS{FS: vfs.Default, log: log}.syncDir("/proc/self") }() // it does not return from a failure
	select {
	case err := <-synced:
		if err != nil {
			t.Error(err)
		}
	case <-log.dead:
		t.Error(log.failed())
	case <-time.After(time.Minute):
		t.Error("it does not return")
	}
}
