package ssd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/tabletest"
)

// skewedKeys returns n keys whose hashes have the same lowest bits in tables of older versions.
// Keys that are read in the order of such a table's files have that property.
func skewedKeys(n, bits int) []uint64 {
	keys := make([]uint64, 0, n)
	for i := 0; len(keys) < n; i++ {
		if k := tabletest.SpreadKey(i); slots.Hash(k)%(1<<bits) == 1<<bits-1 {
			keys = append(keys, k)
		}
	}
	return keys
}

// keyRows yields a trained row for each of the keys.
type keyRows struct {
	layout sparsetable.Layout
	keys   []uint64
}

func (s *keyRows) Next() (uint64, []float32, error) {
	if len(s.keys) == 0 {
		return 0, nil, io.EOF
	}
	key := s.keys[0]
	s.keys = s.keys[1:]
	row := make([]float32, s.layout.Words())
	row[0] = float32(key % 1000)
	s.layout.SetStats(row, sparsetable.RowStats{Count: 1})
	return key, row, nil
}

// TestSSDSkewedKeys fills tables, by imports and by pulls, with keys that share the lowest bits of
// their hashes in another table. No bucket may become too large, every row must be there, and the
// table must work after it is opened again.
func TestSSDSkewedKeys(t *testing.T) {
	for _, l := range []sparsetable.Layout{{ValueDim: 16}, {ValueDim: 300}} {
		for _, bits := range []int{0, 4, 10} {
			for _, pulled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d values, %d bits, pulled %v", l.ValueDim, bits, pulled), func(t *testing.T) {
					if err := skewTable(t, l, bits, pulled, openOn); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	t.Run("older version", func(t *testing.T) {
		l := sparsetable.Layout{ValueDim: 300}
		if err := skewTable(t, l, 10, false, openOldOn); !errors.Is(err, sparsetable.ErrSkewed) || !strings.Contains(err.Error(), "aibox table import") {
			t.Errorf("error %v, want one that says to import the rows into a new table; without an error, the keys of this test are not skewed", err)
		}
	})
}

type openTable func(context.Context, sparsetable.Options, []blockio.Device, vfs.FS) (sparsetable.Table, error)

func skewTable(t *testing.T, l sparsetable.Layout, bits int, pulled bool, open openTable) error {
	n := min(20_000, 4_000_000/l.Bytes())
	keys := skewedKeys(n, bits)
	o := sparsetable.Options{Dir: "/ssd0", Layout: l}
	o.MemoryBytes = smallest(l, sparsetable.SSDOptions{Dirs: []string{"/ssd0"}}, int64(n/8)) + 2<<20
	device, fs := blocktest.New(blocktest.Options{Dir: "/ssd0"}), vfs.NewMem()
	for range 2 {
		tab, err := open(t.Context(), o, []blockio.Device{device}, fs)
		if err != nil {
			return err
		}
		if err := errors.Join(fillSkewed(t.Context(), tab, keys, pulled), tab.Close()); err != nil {
			return err
		}
	}
	return nil
}

// fillSkewed writes a row for each key, checks that the table has exactly these rows, and takes a
// snapshot.
func fillSkewed(ctx context.Context, tab sparsetable.Table, keys []uint64, pulled bool) error {
	l := tab.Layout()
	if !pulled {
		if _, err := tab.Import(ctx, &keyRows{l, keys}); err != nil {
			return err
		}
	}
	for from := 0; pulled && from < len(keys); from += len(keys) / 20 {
		ws, err := tab.Pull(ctx, keys[from:min(len(keys), from+len(keys)/20)], sparsetable.PullCreate)
		if err != nil {
			return err
		}
		for i := range ws.Len() {
			ws.Row(i)[0] = float32(keys[from+i] % 1000)
			l.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
		}
		ws.Release()
	}
	seen := 0
	err := tab.Scan(ctx, func(key uint64, row []float32) error {
		seen++
		if row[0] != float32(key%1000) {
			return fmt.Errorf("the row of key %x holds %g", key, row[0])
		}
		return nil
	})
	if err == nil && seen != len(keys) {
		err = fmt.Errorf("the table has %d rows, want %d", seen, len(keys))
	}
	if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
		err = errors.Join(err, fmt.Errorf("the table takes %d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes))
	}
	pending, failed := tab.Snapshot(ctx, nil)
	if failed == nil {
		_, failed = pending.Wait()
	}
	return errors.Join(err, failed)
}
