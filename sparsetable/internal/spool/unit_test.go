package spool

import (
	"testing"

	"aibox/sparsetable/internal/slots"
)

// TestUnits checks that the units of a spool have every slot exactly once, and that all rows of a
// slot are in the partitions of its unit.
func TestUnits(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 7, 8, 31, 32, 33, 100, 1000, 4097} {
		for _, free := range []uint{0, 1, 2} {
			s := &Spool{shape: Shape{Bits: 4, BlockBytes: 4096}, entry: 40, place: Place{Free: free, Shift: free}, parts: make([]partition, 16)}
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
			units := s.Units(level)
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
				slot, part := x.Slot(h), uint32(h>>s.place.Shift&s.mask())
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
