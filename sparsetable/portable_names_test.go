package sparsetable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/tabletest"
)

// TestIndexNamesNoOtherFiles checks that an index that comes from elsewhere may name only delta
// files of its own table. Other files, of another table or outside of its directories, would be
// deleted with the snapshot.
func TestIndexNamesNoOtherFiles(t *testing.T) {
	at := t.TempDir()
	from := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: filepath.Join(at, "from"), Layout: tabletest.CountLayout, MemoryBytes: 8 << 20}
	tab, err := sparsetable.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	tabletest.CountRows(t, tab, map[uint64]float32{}, 0, 100)
	tabletest.Commit(t, tab, nil)
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(catalog.Options{Dir: filepath.Join(from.Dir, "catalog"), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pin, err := c.Pin(0)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	own := pin.Snapshot().Deltas[0].Name
	for _, name := range []string{
		own, "../../kept", "../kept", "/kept", own + "/../../kept", "kept", "", own[:len(own)-len(".delta")] + ".bucket",
		"0123456789abcdef-0123456789abcdef.delta",
	} {
		s := pin.Snapshot()
		s.Deltas = append([]catalog.Delta(nil), s.Deltas...)
		s.Deltas[0].Name = name
		index := filepath.Join(t.TempDir(), "index")
		f, err := os.Create(index)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(pin.Write(f, s, 0), f.Close()); err != nil {
			t.Fatal(err)
		}
		to := from
		to.Dir = filepath.Join(t.TempDir(), "to")
		_, err = sparsetable.RestoreIndex(t.Context(), to, []string{index})
		var damaged *sparsetable.CorruptionError
		if right := name == own; right && err != nil || !right && (!errors.As(err, &damaged) || damaged.File != index) {
			t.Errorf("a delta file of the name %q: %v", name, err)
		}
	}
}
