package reader

// keyTable numbers the keys of a pass in the order of their first use. It is an
// open-addressing table with linear probing, at most half full, emptied in
// constant time between passes: a slot is in use only if its stamp equals that of
// the table. Keys are uniformly distributed hashes already (see Key), so their low
// bits select the slot.
type keyTable struct {
	slots []keySlot // power of two
	stamp uint32
	keys  []uint64 // by number

	touched uint32 // makes the compiler keep loads whose values are not needed
}

type keySlot struct {
	key    uint64
	number int32
	stamp  uint32
}

// reset empties the table, which will append the keys to come to keys.
func (t *keyTable) reset(keys []uint64) {
	t.keys = keys[:0]
	t.stamp++
	if t.slots == nil || t.stamp == 0 {
		t.slots = make([]keySlot, max(len(t.slots), 1024))
		t.stamp = 1
	}
}

// lookahead is how many slots are touched before the first of them is needed, so that
// the processor waits for them at the same time and not one after the other.
const lookahead = 32

// numberAll puts the numbers of keys into numbers, and gives each new key the next
// number.
func (t *keyTable) numberAll(keys []uint64, numbers []int32) {
	for len(keys) > 0 {
		n := min(len(keys), lookahead)
		for 2*(len(t.keys)+n) > len(t.slots) {
			t.grow()
		}
		slots, mask := t.slots, uint64(len(t.slots)-1)
		for _, key := range keys[:n] {
			t.touched += slots[key&mask].stamp
		}
		for i, key := range keys[:n] {
			at := key & mask
			for slots[at].stamp == t.stamp && slots[at].key != key {
				at = (at + 1) & mask
			}
			slot := &slots[at]
			if slot.stamp != t.stamp {
				*slot = keySlot{key, int32(len(t.keys)), t.stamp}
				t.keys = append(t.keys, key)
			}
			numbers[i] = slot.number
		}
		keys, numbers = keys[n:], numbers[n:]
	}
}

// grow doubles the table.
func (t *keyTable) grow() {
	t.slots = make([]keySlot, 2*len(t.slots))
	t.stamp = 1
	mask := uint64(len(t.slots) - 1)
	for n, key := range t.keys {
		i := key & mask
		for t.slots[i].stamp == 1 {
			i = (i + 1) & mask
		}
		t.slots[i] = keySlot{key, int32(n), 1}
	}
}
