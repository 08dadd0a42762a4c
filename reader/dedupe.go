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

// number returns the key's number, and gives a new key the next number.
func (t *keyTable) number(key uint64) int32 {
	mask := uint64(len(t.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		slot := &t.slots[i]
		if slot.stamp != t.stamp {
			n := int32(len(t.keys))
			*slot = keySlot{key, n, t.stamp}
			t.keys = append(t.keys, key)
			if 2*len(t.keys) > len(t.slots) {
				t.grow()
			}
			return n
		}
		if slot.key == key {
			return slot.number
		}
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
