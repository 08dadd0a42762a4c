package newbucket

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
)

const words = 2

// row returns the contents of a row of the i-th kind.
func row(kind, key uint64) []float32 { return []float32{float32(kind), float32(key)} }

// oldBucket calls fn with a bucket with these keys, whose rows are of kind 0.
func oldBucket(t *testing.T, keys []uint64, fn func(old *bucketfile.Bucket)) {
	t.Helper()
	dev := blocktest.New(blocktest.Options{})
	s, err := bucketfile.Open(t.Context(), bucketfile.State{}, nil, bucketfile.Options{Table: 1, RowWords: words, Devices: []blockio.Device{dev}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	}()
	a, err := s.Begin(1, len(keys), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		a.Put(k, row(0, k))
	}
	loc, err := a.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Read(1, loc, func(b *bucketfile.Bucket) error { fn(b); return nil }); err != nil {
		t.Fatal(err)
	}
}

// check checks that the collected rows are of the expected kinds.
func (w *Content) check(t *testing.T, want map[uint64]float32) {
	t.Helper()
	got := map[uint64]float32{}
	for i, k := range w.Keys {
		if _, twice := got[k]; twice {
			t.Errorf("key %d comes twice", k)
		}
		if w.Hashes[i] != w.Hash.Of(k) || len(w.Rows[i]) != words || w.Rows[i][1] != float32(k) {
			t.Errorf("key %d has the hash %x and the row %v", k, w.Hashes[i], w.Rows[i])
		}
		got[k] = w.Rows[i][0]
	}
	if !maps.Equal(got, want) {
		t.Errorf("keys and kinds of rows %v, want %v", got, want)
	}
}

// Dirty rows replace those of the old bucket, and rows that are not picked are left out.
func TestMerge(t *testing.T) {
	w := Content{Hash: 99}
	dirty := func(keys ...uint64) {
		w.NoDirty()
		for _, k := range keys {
			w.AddDirty(uint32(k), k, row(1, k))
		}
	}
	oldBucket(t, []uint64{1, 2, 3}, func(old *bucketfile.Bucket) {
		dirty(2, 4)
		w.Merge(old, nil)
		w.check(t, map[uint64]float32{1: 0, 2: 1, 3: 0, 4: 1})
		if w.SameKeys(3) {
			t.Error("a new key counts as one of the old ones")
		}
		dirty(3, 1)
		w.Merge(old, nil)
		w.check(t, map[uint64]float32{1: 1, 2: 0, 3: 1})
		if !w.SameKeys(3) {
			t.Error("the keys are others")
		}
		if n := w.Filter(func(row []float32) bool { return row[0] == 1 }); n != 2 || w.SameKeys(3) {
			t.Errorf("%d rows are dropped, want 2; the keys are the same: %v", n, w.SameKeys(3))
		}
		w.check(t, map[uint64]float32{2: 0})
		w.Merge(old, func(h uint64) bool { return h != w.Hash.Of(1) && h != w.Hash.Of(2) })
		w.check(t, map[uint64]float32{3: 1})
		dirty(7)
		w.Merge(nil, nil)
		w.AddOthers(old, nil)
		w.check(t, map[uint64]float32{1: 0, 2: 0, 3: 0, 7: 1})
	})
}

// Imported rows replace dirty ones, and these replace those of the old bucket. Of imported rows
// with the same key the last one counts.
func TestImported(t *testing.T) {
	w := Content{Hash: 99}
	m := Imported{Content: &w, Table: make([]uint32, 64)}
	oldBucket(t, []uint64{1, 2, 3, 4}, func(old *bucketfile.Bucket) {
		w.Merge(old, nil) // of the slot before
		m.Take(nil, nil, 0)
		m.size = 8 // 4 keys, so that they collide
		clear(m.Table[:m.size])
		for _, k := range []uint64{2, 5, 2, 6} {
			m.set(k, row(2, k))
		}
		m.set(5, row(3, 5))
		if keys := slices.Clone(w.Keys); !slices.Equal(keys, []uint64{2, 5, 6}) {
			t.Fatalf("the imported keys are %v", keys)
		}
		for i, k := range w.Keys {
			if m.Find(k) != i {
				t.Errorf("key %d is found at %d, want %d", k, m.Find(k), i)
			}
		}
		if m.Find(1) >= 0 {
			t.Errorf("key 1 is found at %d", m.Find(1))
		}
		for _, k := range []uint64{2, 3, 7} {
			w.AddDirty(uint32(k), k, row(1, k))
		}
		m.AddDirtyOthers()
		m.AddOld(old)
		w.check(t, map[uint64]float32{1: 0, 2: 2, 3: 1, 4: 0, 5: 3, 6: 2, 7: 1})
		if w.SameKeys(4) {
			t.Error("the keys of an import count as the old ones")
		}
	})
}
