package slots

import "math/bits"

// A Hasher is the hash function of a table. Its value is the table's own random number. So keys
// that were selected by the hash of one table, for example because they come in the order of its
// files, are spread evenly over the slots of another. Hasher 0 is Hash.
type Hasher uint64

// Of returns the hash of a key. It is a bijection, like Hash.
func (h Hasher) Of(key uint64) uint64 { return Hash(key ^ uint64(h)) }

// Hash mixes key so that every bit of the result depends on every bit of key. It is the finalizer
// of MurmurHash3 (Appleby), a bijection, so distinct keys have distinct hashes.
func Hash(key uint64) uint64 {
	key ^= key >> 33
	key *= 0xff51afd7ed558ccd
	key ^= key >> 33
	key *= 0xc4ceb9fe1a85ec53
	key ^= key >> 33
	return key
}

// maskOf is 2^(L+1) - 1 for n slots.
func maskOf(n uint32) uint32 { return uint32(1)<<bits.Len32(n) - 1 }

// Slot is the slot of the keys with that hash.
func (x *Index) Slot(hash uint64) uint32 { return route(hash, x.n, x.mask) }

// MaskOf is the mask of the hash bits that must equal the number of slot.
func (x *Index) MaskOf(slot uint32) uint64 { return SlotMask(slot, x.n) }

// SlotMask is MaskOf in an index of n slots.
func SlotMask(slot, n uint32) uint64 {
	level := uint(bits.Len32(n)) - 1
	if slot >= 1<<level || slot < n-1<<level {
		level++
	}
	return 1<<level - 1
}

// LiesAt reports whether slot exists and its bucket is at location.
func (x *Index) LiesAt(slot uint32, location uint64) bool {
	return slot < x.n && x.Location(slot) == location
}

func route(hash uint64, n, mask uint32) uint32 {
	s := uint32(hash) & mask
	parent := s & (mask >> 1)
	if s >= n { // compiled to a conditional move; a branch would be unpredictable
		s = parent
	}
	return s
}

// NextSplit returns the next slot to be split, and the new slot that takes some of its keys.
func (x *Index) NextSplit() (from, to uint32) {
	return x.n & (x.mask >> 1), x.n
}

// ShouldSplit reports whether a table of that many rows should have more slots.
func (x *Index) ShouldSplit(totalRows int64) bool {
	return totalRows > int64(x.n)*x.targetRows
}

// Grow makes the slot `to` of NextSplit, without a bucket. From now on some keys of `from` belong
// to it, and it is marked if `from` is. The caller must set the locations and filters of both slots
// before the index is used. Grow fails if there are 2^31 slots, or if memory cannot be mapped; the
// index is then unchanged.
func (x *Index) Grow() error {
	if x.n == maxSlots {
		return errFull
	}
	from, to := x.NextSplit()
	if err := x.addSlot(); err != nil {
		return err
	}
	x.inheritMark(from, to)
	x.touch(to >> x.pageShift)
	return nil
}

// SetTargetRows changes the mean number of rows per slot above which ShouldSplit returns true.
func (x *Index) SetTargetRows(n int) { x.targetRows = int64(n) }

// TargetRows is the mean number of rows per slot above which ShouldSplit returns true.
func (x *Index) TargetRows() int { return int(x.targetRows) }

// NextMerge returns the last slot, which a merge removes, and the slot that takes its
// keys. There must be at least two slots.
func (x *Index) NextMerge() (from, into uint32) {
	from = x.n - 1
	return from, from &^ (uint32(1) << (bits.Len32(from) - 1))
}

// Shrink removes the slot `from` of NextMerge. From now on its keys belong to `into`, which is
// marked if either of the two was. The caller must set the location and filter of `into` before the
// index is used. Shrink frees the memory of a chunk without slots, and fails only if that fails;
// the slot is removed nevertheless.
func (x *Index) Shrink() error {
	if x.n < 2 {
		panic("slots: the only slot cannot be merged")
	}
	x.touch((x.n - 1) >> x.pageShift) // so that a capture copies it unchanged
	from, into := x.NextMerge()
	x.inheritMark(from, into)
	x.Unmark(from)
	at := &x.chunks[(x.n-1)>>chunkSlotsBits]
	in := (x.n - 1) % chunkSlots
	at.locations[in] = 0 // Grow expects it to be 0
	clear(at.filters[in*x.filter.words:][:x.filter.words])
	x.n--
	x.mask = maskOf(x.n)
	x.dirty.clearFrom(x.Pages())
	if in > 0 {
		return nil
	}
	err := at.unmap()
	x.chunks = x.chunks[:len(x.chunks)-1]
	return err
}

// Restore gives a new index that many slots, which DecodePage then fills. Afterwards no page is
// dirty. It fails like Grow.
func (x *Index) Restore(slots uint32) error {
	if slots < x.n || slots > maxSlots {
		return errFull
	}
	for x.n < slots {
		if err := x.addSlot(); err != nil {
			return err
		}
	}
	x.dirty.clearAll()
	return nil
}

// addSlot adds a slot, in a new chunk if the last one is full.
func (x *Index) addSlot() error {
	if x.n%chunkSlots == 0 {
		if err := x.addChunk(); err != nil {
			return err
		}
	}
	x.n++
	x.mask = maskOf(x.n)
	x.dirty.grow(x.Pages())
	return nil
}

// SlotAmong is the slot of the keys with that hash in an index of n slots.
func SlotAmong(hash uint64, n uint32) uint32 { return route(hash, n, maskOf(n)) }
