package numbering

import "sync/atomic"

// Table numbers keys in the order of their first use. It is an open-addressing table with
// linear probing, at most half full, emptied in constant time: a slot is in use only if its
// stamp equals that of the table. Keys are uniformly distributed hashes already (see
// reader.Key), so their low bits select the slot.
type Table struct {
	slots []keySlot // power of two
	stamp uint32
	keys  []uint64 // by number
}

// keySlot has a key and its number. Of its use, the upper half is a stamp, and the lower one
// the number.
type keySlot struct{ key, use uint64 }

// stampOf is the stamp of a slot's use.
func stampOf(use uint64) uint32 { return uint32(use >> 32) }

// Reset empties the table, which will append the keys to come to keys.
func (t *Table) Reset(keys []uint64) {
	t.keys = keys[:0]
	t.stamp++
	if t.slots == nil || t.stamp == 0 {
		t.slots = make([]keySlot, max(len(t.slots), 1024))
		t.stamp = 1
	}
}

// Keys are the keys so far, by number.
func (t *Table) Keys() []uint64 { return t.keys }

// use is what a slot's use is for a number.
func (t *Table) use(number int) uint64 { return uint64(t.stamp)<<32 | uint64(uint32(number)) }

// lookahead is how many slots are touched before the first of them is needed, so that
// the processor waits for them at the same time and not one after the other.
const lookahead = 32

// touch reads the slots where the search for the keys begins.
func (t *Table) touch(keys []uint64) {
	slots, mask := t.slots, uint64(len(t.slots)-1)
	for _, key := range keys {
		atomic.LoadUint64(&slots[key&mask].use) // which the compiler keeps, though nobody uses the value
	}
}

// Number puts the numbers of keys into numbers, and gives each new key the next
// number.
func (t *Table) Number(keys []uint64, numbers []int32) {
	for len(keys) > 0 {
		n := min(len(keys), lookahead)
		t.grow(len(t.keys) + n)
		t.touch(keys[:n])
		slots, mask, stamp := t.slots, uint64(len(t.slots)-1), t.stamp
		for i, key := range keys[:n] {
			at := key & mask
			for stampOf(slots[at].use) == stamp && slots[at].key != key {
				at = (at + 1) & mask
			}
			slot := &slots[at]
			if stampOf(slot.use) != stamp {
				*slot = keySlot{key, t.use(len(t.keys))}
				t.keys = append(t.keys, key)
			}
			numbers[i] = int32(uint32(slot.use))
		}
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
	t.slots = make([]keySlot, size)
	t.stamp = 1
	mask := uint64(size - 1)
	for n, key := range t.keys {
		i := key & mask
		for t.slots[i].use != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = keySlot{key, t.use(n)}
	}
}
