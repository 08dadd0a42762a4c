package sparsetable

import (
	"math"
	"testing"

	"aibox/sparsetable/internal/slots"
)

func TestDistinctKeys(t *testing.T) {
	for _, n := range []int{0, 1, 1000, maxSampleKeys - 1, 50_000, 400_000} {
		var d distinctKeys
		for range 3 { // repetitions do not count
			for i := range n {
				key := uint64(i) * 0x9e3779b97f4a7c15
				d.add(key, slots.Hash(key))
			}
		}
		got := d.number()
		if n < maxSampleKeys && got != int64(n) {
			t.Errorf("%d keys, want exactly %d", got, n)
		}
		// The sample has half of its bound at least.
		if off := math.Abs(float64(got)/float64(max(n, 1)) - 1); n > 0 && off > 4/math.Sqrt(maxSampleKeys/2) {
			t.Errorf("%d keys, want %d: %.1f %% off", got, n, 100*off)
		}
		if len(d.keys) >= maxSampleKeys {
			t.Errorf("%d keys are kept", len(d.keys))
		}
	}
}

// TestUnits: the units of a spool have every slot once, and all rows of a slot
// are in the partitions of its unit.
func TestUnits(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 7, 8, 31, 32, 33, 100, 1000, 4097} {
		for _, free := range []uint{0, 1, 2} {
			s := &spool{shape: spoolShape{bits: 4, blockBytes: 4096}, entry: 40, free: free, shift: free, parts: make([]spoolPart, 16)}
			level := uint(31)
			for n>>level == 0 {
				level--
			}
			var x *slots.Index
			x, err := slots.New(slots.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for x.Slots() < n {
				if err := x.Grow(); err != nil {
					t.Fatal(err)
				}
			}
			units := s.units(level)
			found := map[uint32]int{} // the unit of a slot
			for i := range units {
				u := &units[i]
				for local := range uint32(u.locals(n)) {
					slot := u.slot(local)
					if u.local(slot) != local {
						t.Fatalf("%d slots: slot %d has local number %d, should have %d", n, slot, u.local(slot), local)
					}
					if _, twice := found[slot]; twice {
						t.Fatalf("%d slots: slot %d is in two units", n, slot)
					}
					found[slot] = i
				}
			}
			for key := range uint64(2000) {
				h := slots.Hash(key)
				slot, part := x.Slot(h), uint32(h>>s.shift&s.mask())
				u, ok := found[slot]
				if !ok {
					t.Fatalf("%d slots: slot %d is in no unit", n, slot)
				}
				has := false
				for _, p := range units[u].parts {
					has = has || p == part
				}
				if !has {
					t.Fatalf("%d slots, %d bits free: slot %d is in unit %d, its key in partition %d", n, free, slot, u, part)
				}
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
