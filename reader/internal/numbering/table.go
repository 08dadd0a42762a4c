package numbering

import (
	"slices"
	"sync/atomic"
)

// Table numbers keys in the order of their first use. It is an open-addressing table with
// linear probing, at most half full. Keys are uniformly distributed hashes already (see
// reader.Key), so their low bits select the slot.
//
// A slot is 0 if empty. Otherwise its low bits, as many as the numbers of a table of this size
// need, hold the number plus 1, and its other bits hold a tag: bits of the key's upper half. The
// key itself is compared only if the tag matches. Slots thus take a quarter of the memory that they
// would take with keys in them, and the most frequent keys, whose first use is early, are close
// together.
type Table struct {
	slots []uint32 // power of two
	keys  []uint64 // by number
}

// Reset empties the table, which will append the keys to come to keys.
func (t *Table) Reset(keys []uint64) {
	t.keys = keys[:0]
	if t.slots == nil {
		t.slots = make([]uint32, 1024)
	}
	clear(t.slots)
}

// Keys are the keys so far, by number.
func (t *Table) Keys() []uint64 { return t.keys }

// tagOf is the tag of a key in a table with that mask.
func tagOf(key, mask uint64) uint32 { return uint32(key>>32) &^ uint32(mask) }

// lookahead is how many slots are touched before the first of them is needed, so that their cache
// misses overlap.
const lookahead = 32

// touch reads the slots where the search for the keys begins.
func (t *Table) touch(keys []uint64) {
	slots, mask := t.slots, uint64(len(t.slots)-1)
	for _, key := range keys {
		atomic.LoadUint32(&slots[key&mask]) // which the compiler keeps, though nobody uses the value
	}
}

// Number puts the numbers of keys into numbers, and gives each new key the next
// number.
func (t *Table) Number(keys []uint64, numbers []int32) {
	for len(keys) > 0 {
		n := min(len(keys), lookahead)
		t.grow(len(t.keys) + n)
		t.touch(keys[:n])
		known, slots, mask := slices.Grow(t.keys, n), t.slots, uint64(len(t.slots)-1)
		for i, key := range keys[:n] {
			tag := tagOf(key, mask)
			for at := key & mask; ; at = (at + 1) & mask {
				slot := slots[at]
				if slot == 0 {
					known = append(known, key)
					slots[at] = tag | uint32(len(known))
					numbers[i] = int32(len(known) - 1)
					break
				}
				if number := slot&uint32(mask) - 1; slot&^uint32(mask) == tag && known[number] == key {
					numbers[i] = int32(number)
					break
				}
			}
		}
		t.keys = known
		keys, numbers = keys[n:], numbers[n:]
	}
}

// grow makes room for that many keys.
func (t *Table) grow(keys int) {
	size := len(t.slots)
	for 2*keys > size {
		size *= 2
	}
	if size == len(t.slots) {
		return
	}
	t.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for n, key := range t.keys {
		i := key & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = tagOf(key, mask) | uint32(n+1)
	}
}
