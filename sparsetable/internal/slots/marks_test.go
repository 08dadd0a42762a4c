package slots

import (
	"math"
	"testing"

	"aibox/internal/testseed"
)

// TestMarks marks and unmarks slots of an index that grows and shrinks, and compares the marks with
// a map.
func TestMarks(t *testing.T) {
	r := testseed.Rand(t)
	x, err := New(Options{FilterBytes: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	marked := map[uint32]bool{}
	for range 20000 {
		slot := r.Uint32N(x.Slots())
		switch k := r.IntN(10); {
		case k < 3:
			x.Mark(slot)
			marked[slot] = true
		case k < 5:
			x.Unmark(slot)
			delete(marked, slot)
		case k < 9:
			from, to := x.NextSplit()
			if err := x.Grow(); err != nil {
				t.Fatal(err)
			}
			if marked[from] {
				marked[to] = true
			}
			x.Set(to, uint64(to)+1)
		case x.Slots() > 1:
			from, into := x.NextMerge()
			if err := x.Shrink(); err != nil {
				t.Fatal(err)
			}
			if marked[from] {
				marked[into] = true
			}
			delete(marked, from)
		}
	}
	if x.Slots() < 2*chunkSlots {
		t.Errorf("%d slots: the marks of one chunk were tested", x.Slots())
	}
	first := r.Uint32N(x.Slots())
	end := first + r.Uint32N(x.Slots()-first)
	lowest, beyond := uint64(0), uint64(math.MaxUint64)
	for i, span := range [][2]uint32{{0, x.Slots()}, {0, 1 << 31}, {first, end}, {0, x.Slots()}} {
		if i == 3 {
			lowest, beyond = uint64(x.Slots()/4), uint64(x.Slots()/2)
		}
		got := map[uint32]bool{}
		last := int64(-1)
		x.Marked(span[0], span[1], lowest, beyond, func(slot uint32, location uint64) {
			if int64(slot) <= last || location != x.Location(slot) {
				t.Errorf("slot %d at %d after %d", slot, location, last)
			}
			last = int64(slot)
			got[slot] = true
		})
		for slot := range x.Slots() {
			if at := x.Location(slot); got[slot] != (marked[slot] && slot >= span[0] && slot < span[1] && lowest <= at && at < beyond) {
				t.Fatalf("from %d to %d: slot %d is marked: %v, found: %v", span[0], span[1], slot, marked[slot], got[slot])
			}
		}
	}
}
