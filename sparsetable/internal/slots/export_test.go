package slots

// What tests alone need of an index.

// DirtyPages is the number of pages changed since the last capture, those of a
// running one not included.
func (x *Index) DirtyPages() int { return x.dirty.count() }

// Slots is the number of slots when the capture began.
func (c *Capture) Slots() uint32 { return c.slots }

// Left is the number of pages not yet taken.
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
