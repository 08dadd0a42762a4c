package sparsetable_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

func openMemory(ctx context.Context, o sparsetable.Options) (sparsetable.Table, error) {
	o.Kind = sparsetable.KindMemory
	return sparsetable.Open(ctx, o)
}

func TestMemory(t *testing.T) { tabletest.Run(t, tabletest.Kind{Open: openMemory}) }

// TestMemoryInUse checks that a table in memory can be open for writing only once, and for
// reading at the same time.
func TestMemoryInUse(t *testing.T) {
	o := sparsetable.Options{Dir: filepath.Join(t.TempDir(), "new", "table"), Layout: tabletest.CountLayout}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	tabletest.Commit(t, tab, nil)
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
