package ssd_test

import (
	"bytes"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDHotDamage damages the file with copies of the most used rows, in several ways. These rows
// are also in buckets, so nothing fails, but a warning is logged, and Verify says what is wrong.
func TestSSDHotDamage(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a flipped bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 4
			return os.WriteFile(path, b, 0o666)
		},
		"cut":  func(path string) error { return os.Truncate(path, 4096) },
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir, rows := hotTable(t)
			files, err := filepath.Glob(filepath.Join(dir, "*.delta"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := damage(files[0]); err != nil {
				t.Fatal(err)
			}
			for _, readOnly := range []bool{true, false} {
				var log bytes.Buffer
				o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: dir, MustExist: true}
				o.ReadOnly, o.Logger = readOnly, slog.New(slog.NewTextHandler(&log, nil))
				faults := 0
				if _, err := sparsetable.Verify(t.Context(), o, func(sparsetable.Fault) { faults++ }, nil); err != nil || faults == 0 {
					t.Errorf("Verify finds %d faults, %v", faults, err)
				}
				tab, err := sparsetable.Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				ssd.WaitRestored(tab)
				keys := slices.Collect(maps.Keys(rows))
				ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range keys {
					if have := ws.Row(i)[0]; have != rows[k] {
						t.Fatalf("key %x holds %v, want %v", k, have, rows[k])
					}
				}
				ws.Release()
				if err := tab.Close(); err != nil {
					t.Error(err)
				}
				if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), filepath.Base(files[0])) {
					t.Errorf("the log says %q", log.String())
				}
			}
		})
	}
}

// hotTable makes a table on files whose rows are all in buckets, with copies of the most used rows
// in its delta file.
func hotTable(t *testing.T) (dir string, rows map[uint64]float32) {
	t.Helper()
	dir, rows = t.TempDir(), map[uint64]float32{}
	tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Kind: sparsetable.KindSSD, Dir: dir, Layout: stressLayout})
	if err != nil {
		t.Fatal(err)
	}
	keys := tabletest.KeysFrom(0, 5000)
	ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		rows[k] = float32(k >> 41)
		ws.Row(i)[0] = rows[k]
		stressLayout.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
	if err := tab.(sparsetable.Flusher).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := tab.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, rows
}
