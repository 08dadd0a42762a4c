package slots

// These functions give access to the internals of an index; only tests need them.

// DirtyPages returns the number of pages that have changed since the last capture began.
func (x *Index) DirtyPages() int { return x.dirty.count() }

// Slots returns the number of slots when the capture began.
func (c *Capture) Slots() uint32 { return c.slots }

// Left returns the number of pages that the capture has not taken yet.
func (c *Capture) Left() int { return c.left }

// Add makes MayContain(slot, hash) true.
func (x *Index) Add(slot uint32, hash uint64) {
	if x.filter.bytes == 0 {
		return
	}
	x.touch(slot >> x.pageShift)
	x.filter.set(x.filterOf(slot), mix(hash))
}

// EncodePage appends page to dst, in the format of the package's documentation.
func (x *Index) EncodePage(page uint32, dst []byte) []byte {
	return x.encodePage(page, x.n, dst)
}
