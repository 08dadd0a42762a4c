package sparsetable_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
)

// TestSSDLostFile: a file that only an older snapshot has is lost. The newest opens
// and goes on, with a warning; the older one does not open, and can be dropped.
func TestSSDLostFile(t *testing.T) {
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: t.TempDir(), Layout: stressLayout}
	rows := map[uint64]float32{}
	trainInto(t, o, rows, 0, 3000)
	old, err := filepath.Glob(filepath.Join(o.Dir, "*.bucket"))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	before, err := tab.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	trainInto(t, o, rows, 0, 3000) // every bucket is written anew
	lost := slices.DeleteFunc(old, func(path string) bool { _, err := os.Stat(path); return err != nil })
	if len(lost) == 0 {
		t.Fatal("the older snapshot has no file")
	}
	for _, path := range lost {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	trainInto(t, o, rows, 0, 100)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), filepath.Base(lost[0])) {
		t.Errorf("the log says %q", log.String())
	}
	older := o
	older.SnapshotID, older.ReadOnly = before[0].ID, true
	if _, err := sparsetable.Open(t.Context(), older); !errors.Is(err, sparsetable.ErrFiles) {
		t.Errorf("the older snapshot: %v", err)
	}
	if tab, err = sparsetable.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tab.DropSnapshot(before[0].ID), tab.Close()); err != nil {
		t.Error(err)
	}
	trainInto(t, o, rows, 0, 100)
}

// TestMemoryInUse: one writes a table in memory, others may read it.
func TestMemoryInUse(t *testing.T) {
	o := sparsetable.Options{Dir: filepath.Join(t.TempDir(), "new", "table"), Layout: stressLayout}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tab.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := sparsetable.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrInUse) || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("a second writer: %v", err)
	}
	reading := o
	reading.ReadOnly = true
	other, err := sparsetable.Open(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Close(), tab.Close()); err != nil {
		t.Fatal(err)
	}
	if tab, err = sparsetable.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
}
