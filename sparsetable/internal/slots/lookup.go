package slots

// lookupBlock is the number of keys that go through Lookup's steps together: their cache misses
// overlap, and the results of one step are still in the first-level cache in the next.
const lookupBlock = 64

// Lookup sets slots[i] to the slot of hashes[i], and locations[i] to the location of its bucket, or
// to 0 if there is no bucket or the filter excludes the key. It returns how many reads of buckets
// the filters saved. Both results must be at least as long as hashes.
func (x *Index) Lookup(hashes []uint64, slots []uint32, locations []uint64) (negatives int) {
	slots, locations = slots[:len(hashes)], locations[:len(hashes)]
	for len(hashes) > 0 {
		n := min(len(hashes), lookupBlock)
		negatives += x.lookupBlock(hashes[:n], slots[:n], locations[:n])
		hashes, slots, locations = hashes[n:], slots[n:], locations[n:]
	}
	return negatives
}

// lookupBlock works in steps whose loads do not wait for each other: no branch depends on them, so
// the processor runs ahead while they miss its cache.
func (x *Index) lookupBlock(hashes []uint64, slots []uint32, locations []uint64) (negatives int) {
	n, mask, chunks := x.n, x.mask, x.chunks
	for i, h := range hashes {
		s := route(h, n, mask)
		slots[i] = s
		locations[i] = chunks[s>>chunkSlotsBits].locations[s%chunkSlots]
	}
	f := &x.filter
	if f.bytes == 0 {
		return 0
	}
	var maybe [lookupBlock]uint64
	// This step only loads, so that a dozen cache misses are outstanding at once: without it,
	// lookups in a table of 20 million rows take twice as long.
	for i, s := range slots {
		maybe[i] = chunks[s>>chunkSlotsBits].filters[s%chunkSlots*f.words]
	}
	for i, h := range hashes {
		s := slots[i]
		at := s % chunkSlots * f.words
		maybe[i] = f.has(chunks[s>>chunkSlotsBits].filters[at:at+f.words], mix(h))
	}
	for i, m := range maybe[:len(hashes)] {
		spared := uint64(0)
		if locations[i] != 0 {
			spared = 1
		}
		negatives += int(spared &^ m)
		locations[i] &= -m
	}
	return negatives
}
