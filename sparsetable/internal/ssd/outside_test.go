package ssd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// outsideTable is a table whose snapshot has far more rows outside of buckets than the cache of a
// reader can hold.
type outsideTable struct {
	opts   sparsetable.Options
	values map[uint64]float32
	keys   []uint64
	dirty  int
}

var outsideLayout = sparsetable.Layout{ValueDim: 16, StateDim: 4}

func makeOutside(t *testing.T) *outsideTable {
	t.Helper()
	const stored, again, fresh = 60_000, 50_000, 5_000
	o := &outsideTable{
		opts:   sparsetable.Options{Kind: sparsetable.KindSSD, Dir: filepath.Join(t.TempDir(), "table"), Layout: outsideLayout, MemoryBytes: 32 << 20},
		values: map[uint64]float32{},
	}
	tab, err := sparsetable.Open(t.Context(), o.opts)
	if err != nil {
		t.Fatal(err)
	}
	train := func(from, n int, add float32) {
		for ; n > 0; from, n = from+1000, n-1000 {
			keys := tabletest.KeysFrom(from, 1000)
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullCreate)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				v := float32(from+i) + add
				o.values[k] = v
				for j := range outsideLayout.ValueDim {
					ws.Row(i)[j] = v + float32(j)
				}
				st := outsideLayout.Stats(ws.Row(i))
				st.Count++
				outsideLayout.SetStats(ws.Row(i), st)
			}
			ws.Release()
		}
	}
	train(0, stored, 0)
	train(stored, fresh, 0) // splits slots as far as so many rows want
	settle(t, tab)
	train(0, again, 0.5)
	train(stored+fresh, fresh, 0)
	dirty, err := ssd.DirtyInSnapshot(tab, tabletest.Commit(t, tab, nil).ID)
	if o.dirty = int(dirty); err != nil || o.dirty < again*8/10 { // splits take some along
		t.Fatalf("%d rows are dirty, %v", dirty, err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	o.keys = tabletest.KeysFrom(0, stored+2*fresh+5000) // some are not there
	o.opts.ReadOnly = true
	return o
}

// smallest returns the smallest budget for reading that the table accepts.
func (o *outsideTable) smallest(t *testing.T) int64 {
	t.Helper()
	opts := o.opts
	opts.MemoryBytes = 1
	for range 8 { // it says so of one part after the other
		tab, err := sparsetable.Open(t.Context(), opts)
		if err == nil {
			err = tab.Close()
			if err != nil {
				t.Fatal(err)
			}
			return opts.MemoryBytes
		}
		if !errors.Is(err, sparsetable.ErrBudget) {
			t.Fatal(err)
		}
		text := err.Error()
		at := len(text) - 1
		for n := 0; at > 0; at-- {
			if _, e := fmt.Sscanf(text[at:], "budget of %d bytes, but", &n); e == nil {
				opts.MemoryBytes = int64(n)
				break
			}
		}
	}
	t.Fatalf("a budget of %d bytes is too small, too", opts.MemoryBytes)
	return 0
}

func (o *outsideTable) row(key uint64, row []float32) error {
	want, ok := o.values[key]
	if !ok {
		return fmt.Errorf("key %x is there", key)
	}
	for j, v := range row[:outsideLayout.ValueDim] {
		if v != want+float32(j) {
			return fmt.Errorf("key %x holds %v, want %v at position %d", key, v, want+float32(j), j)
		}
	}
	return nil
}

// TestSSDReadOutside opens a snapshot for reading with budgets that hold all of its dirty rows, a
// part of them, and hardly any. Pull and Scan must return every row as it was, whether a bucket has
// an older version or none. Verify must find nothing wrong, and the budget must be kept.
func TestSSDReadOutside(t *testing.T) {
	o := makeOutside(t)
	rng := testseed.Rand(t)
	smallest := o.smallest(t)
	for _, budget := range []int64{smallest, smallest + 512<<10, 32 << 20} {
		o.opts.MemoryBytes = budget
		tab, err := sparsetable.Open(t.Context(), o.opts)
		if err != nil {
			t.Fatal(err)
		}
		ssd.WaitRestored(tab)
		st := tab.Stats()
		t.Logf("budget of %d bytes: %d rows in memory, %d bytes outside", budget, st.CacheRows, st.OutsideBytes)
		if st.Rows != int64(len(o.values)) || st.DirtyRows != 0 || st.OutsideBytes < 16*int64(o.dirty) || st.OutsideBytes > 17*int64(o.dirty) {
			t.Errorf("%+v", st)
		}
		if budget == smallest && st.CacheRows > int64(o.dirty)/20 {
			t.Errorf("%d rows are in memory: that is no small cache", st.CacheRows)
		}
		if budget == 32<<20 && st.CacheRows < int64(o.dirty) {
			t.Errorf("%d rows are in memory, there is room for %d", st.CacheRows, o.dirty)
		}
		var ahead [][]uint64 // passes that are announced
		for n := range 100 {
			for len(ahead) < 4 {
				keys := make([]uint64, 0, 200)
				for _, i := range rng.Perm(len(o.keys))[:200] {
					keys = append(keys, o.keys[i])
				}
				ahead = append(ahead, keys)
				if n > 50 {
					tab.Announce(keys)
				}
			}
			keys := ahead[0]
			ahead = ahead[1:]
			if n == 99 && budget < 32<<20 {
				tabletest.Until(t, "rows are read ahead", func() bool { return tab.Stats().Prefetched > 0 })
			}
			ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				if _, ok := o.values[k]; ok != ws.Found(i) {
					t.Fatalf("key %x is found: %v", k, ws.Found(i))
				}
				if ws.Found(i) {
					if err := o.row(k, ws.Row(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			ws.Release()
			if st := tab.Stats(); st.MemoryBytes > budget {
				t.Fatalf("%d bytes with a budget of %d", st.MemoryBytes, budget)
			}
		}
		tab.ForgetAnnounced() // what is read ahead right now may be counted twice
		st = tab.Stats()
		if st.Rows != int64(len(o.values)) || budget == smallest && (st.DeviceReads < 10_000 || st.ReadBytes < 512*st.DeviceReads) {
			t.Errorf("after pulls: %+v", st)
		}
		seen := map[uint64]bool{}
		err = tab.Scan(t.Context(), func(key uint64, row []float32) error {
			if seen[key] {
				return fmt.Errorf("key %x is there twice", key)
			}
			seen[key] = true
			return o.row(key, row)
		})
		if err != nil || len(seen) != len(o.values) {
			t.Errorf("a scan shows %d rows of %d: %v", len(seen), len(o.values), err)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		v, err := sparsetable.Verify(t.Context(), o.opts, func(f sparsetable.Fault) { t.Error(f) }, nil)
		if err != nil || v.Rows != int64(len(o.values)) {
			t.Errorf("verified %+v: %v", v, err)
		}
	}
}

// TestSSDReadOutsideDamage damages the file of a table while the table is open. Reading a row from
// it must then return an error, and not another row.
func TestSSDReadOutsideDamage(t *testing.T) {
	o := makeOutside(t)
	o.opts.MemoryBytes = o.smallest(t)
	tab, err := sparsetable.Open(t.Context(), o.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	ssd.WaitRestored(tab)
	names, err := filepath.Glob(filepath.Join(o.opts.Dir, "*.delta"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := range b {
		if at%100 == 0 {
			b[at] ^= 4
		}
	}
	if err := os.WriteFile(names[0], b, 0o666); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for from := 0; from < 60_000; from += 1000 {
		keys := tabletest.KeysFrom(from, 200)
		ws, err := tab.Pull(t.Context(), keys, sparsetable.PullLookup)
		var bad *sparsetable.CorruptionError
		if errors.As(err, &bad) && bad.File == names[0] {
			wrong++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if err := o.row(k, ws.Row(i)); err != nil {
				t.Fatal(err)
			}
		}
		ws.Release()
	}
	if wrong < 40 { // of 50 pulls of dirty rows
		t.Errorf("%d pulls fail", wrong)
	}
}
