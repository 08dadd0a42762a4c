package priority

import "math/bits"

// entries are the entries of a list, with a hash table of their keys.
type entries struct {
	keys  []uint64
	score []float32
	base  []float32 // words per entry
	words int       // words of base per entry
	index []uint32  // position in keys + 1; 0 if free. The length is a power of two.
	most  int       // limit on the number of entries
}

// entryBytes returns the memory of an entry without the index: key, score, base, and its key once
// more among the chosen ones.
func entryBytes(words int) int64 { return 8 + 4 + 4*int64(words) + 8 }

// newEntries returns entries that take at most limit bytes, apart from temporary memory for
// growing. There is always room for one.
func newEntries(limit int64, words int) entries {
	most := int64(1)
	for slots := int64(4); 4*slots < limit && slots <= 1<<31; slots *= 2 {
		most = max(most, min(slots*3/4, (limit-4*slots)/entryBytes(words)))
	}
	return entries{words: words, most: int(most), index: make([]uint32, 4)}
}

// slot returns the slot where the search for a key begins.
func (e *entries) slot(key uint64) uint64 {
	return (key * 0x9E3779B97F4A7C15) >> (64 - bits.TrailingZeros(uint(len(e.index))))
}

// find returns the position of a key, or -1.
func (e *entries) find(key uint64) int {
	mask := uint64(len(e.index) - 1)
	for s := e.slot(key); ; s = (s + 1) & mask {
		at := int(e.index[s]) - 1
		if at < 0 || e.keys[at] == key {
			return at
		}
	}
}

// add adds a key that has no entry and returns its position. REQUIRES: there is room.
func (e *entries) add(key uint64) int {
	if 4*(len(e.keys)+1) > 3*len(e.index) {
		e.rehash(2 * len(e.index))
	}
	if n := len(e.keys); n == cap(e.keys) {
		room := min(max(2*n, 16), e.most)
		e.keys, e.score, e.base = grown(e.keys, room), grown(e.score, room), grown(e.base, room*e.words)
	}
	e.keys, e.score = append(e.keys, key), append(e.score, 0)
	e.base = e.base[:len(e.keys)*e.words]
	e.insert(key, len(e.keys)-1)
	return len(e.keys) - 1
}

// grown returns a copy of list with the given capacity. append would round it up.
func grown[T any](list []T, capacity int) []T {
	return append(make([]T, 0, capacity), list...)
}

func (e *entries) insert(key uint64, at int) {
	mask := uint64(len(e.index) - 1)
	s := e.slot(key)
	for e.index[s] != 0 {
		s = (s + 1) & mask
	}
	e.index[s] = uint32(at + 1)
}

func (e *entries) rehash(slots int) {
	e.index = make([]uint32, slots)
	for at, key := range e.keys {
		e.insert(key, at)
	}
}

// slotOf returns the slot of the index that holds a position.
func (e *entries) slotOf(at int) uint64 {
	mask := uint64(len(e.index) - 1)
	s := e.slot(e.keys[at])
	for e.index[s] != uint32(at+1) {
		s = (s + 1) & mask
	}
	return s
}

// remove removes the entry at a position and moves the last entry there.
func (e *entries) remove(at int) {
	mask := uint64(len(e.index) - 1)
	// Later keys that could not be found any more move up to the free slot.
	free := e.slotOf(at)
	for s := (free + 1) & mask; e.index[s] != 0; s = (s + 1) & mask {
		if home := e.slot(e.keys[e.index[s]-1]); (s-home)&mask >= (s-free)&mask {
			e.index[free] = e.index[s]
			free = s
		}
	}
	e.index[free] = 0
	last := len(e.keys) - 1
	if at != last {
		e.index[e.slotOf(last)] = uint32(at + 1)
		e.keys[at], e.score[at] = e.keys[last], e.score[last]
		copy(e.baseOf(at), e.baseOf(last))
	}
	e.keys, e.score, e.base = e.keys[:last], e.score[:last], e.base[:last*e.words]
}

func (e *entries) baseOf(at int) []float32 { return e.base[at*e.words : (at+1)*e.words] }

func (e *entries) full() bool { return len(e.keys) >= e.most }

// Saved implements List.
func (e *entries) Saved(keys []uint64) {
	for _, key := range keys {
		if at := e.find(key); at >= 0 {
			e.remove(at)
		}
	}
}

// Clear implements List.
func (e *entries) Clear() {
	clear(e.index)
	e.keys, e.score, e.base = e.keys[:0], e.score[:0], e.base[:0]
}

// Resize implements List.
func (e *entries) Resize(int64) {}

// Bytes implements List.
func (e *entries) Bytes() int64 {
	return 8*int64(cap(e.keys)) + 4*int64(cap(e.score)+cap(e.base)+len(e.index))
}
