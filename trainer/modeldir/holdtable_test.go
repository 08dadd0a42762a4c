package modeldir

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"aibox/sparsetable"
)

// TestHoldTableIsStopped checks that a caller that waits for a process that writes the table gets
// the cause for which the waiting ended, such as a signal.
func TestHoldTableIsStopped(t *testing.T) {
	at := t.TempDir()
	dir := filepath.Join(at, "model")
	dirs := placed(t, dir, []string{filepath.Join(at, "ssd")}, true)
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	writing, err := sparsetable.Open(t.Context(), sparsetable.Options{
		Kind: sparsetable.KindSSD, Layout: sparsetable.Layout{ValueDim: 1}, MemoryBytes: 32 << 20, SSD: sparsetable.SSDOptions{Dirs: dirs}, MustExist: true, SnapshotID: m.TableSnapshot,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	signal := errors.New("a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(signal) })
	if _, err := m.HoldTable(ctx, nil); !errors.Is(err, signal) {
		t.Errorf("waiting for the table ended with %v", err)
	}
}
