package memory

import (
	"math/rand/v2"
	"testing"

	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/offheap"
)

// TestIndexAgainstMap inserts, finds and removes keys at random, over many splits, and compares
// with a map.
func TestIndexAgainstMap(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var a offheap.Arena
		s := newSlabs(layout.Layout{ValueDim: 1}, &a)
		x := index{seed: rng.Uint64(), arena: &a}
		if err := s.grow(40000); err != nil {
			t.Fatal(err)
		}
		if err := x.grow(1); err != nil {
			t.Fatal(err)
		}
		model := map[uint64]uint32{}
		keys := []uint64{}
		highest := 0
		for range 60000 {
			key := rng.Uint64N(30000) // both outcomes are common
			ref := x.find(key, s)
			if ref != model[key] {
				t.Fatalf("seed %d: key %d has reference %d, want %d", seed, key, ref, model[key])
			}
			if ref == 0 && rng.IntN(10) > 0 {
				highest = max(highest, len(model)+1)
				if err := x.grow(segmentsFor(int64(highest))); err != nil {
					t.Fatal(err)
				}
				ref = s.take(key)
				if err := x.insert(key, ref); err != nil {
					t.Fatal(err)
				}
				model[key] = ref
				keys = append(keys, key)
			} else if ref != 0 && rng.IntN(3) == 0 {
				x.remove(key, ref)
				s.put(ref)
				delete(model, key)
			}
		}
		for _, key := range keys {
			if ref := x.find(key, s); ref != model[key] {
				t.Fatalf("seed %d: key %d has reference %d, want %d", seed, key, ref, model[key])
			}
		}
		refs := make([]uint32, len(keys))
		x.findAll(keys, refs, s)
		for i, key := range keys {
			if refs[i] != model[key] {
				t.Fatalf("seed %d: key %d has reference %d among others, want %d", seed, key, refs[i], model[key])
			}
		}
		used := uint64(0)
		for _, g := range x.segs {
			used += g.used
		}
		if used != uint64(len(model)) || s.used != int64(len(model)) {
			t.Errorf("seed %d: %d entries and %d rows for %d keys", seed, used, s.used, len(model))
		}
		if err := a.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestFullSegment checks that colliding tags that fill a segment up to its last free slot, in every
// order around its end, are all found, and can all be removed.
func TestFullSegment(t *testing.T) {
	var g segment
	for i := range uint64(segmentSlots - 1) {
		tag := uint64(segmentSlots-3)<<20 | i // all belong three slots before the end
		if err := g.insert(tag<<32 | (i + 1)); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
	if err := g.insert(1 << 32); err != errSegmentFull {
		t.Errorf("one too many: %v", err)
	}
}
