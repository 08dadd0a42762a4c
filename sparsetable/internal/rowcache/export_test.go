package rowcache

import "math"

// These functions give access to the internals of a cache; only tests need them.

// ForEach calls fn for every row.
func (c *Cache) ForEach(fn func(Entry) Change) {
	for at, end := uint32(0), false; !end; {
		at, end = c.VisitFrom(at, Pick{}, math.MaxInt, fn)
	}
}

// Look returns the state of ref, which must be pinned or taken.
func (c *Cache) Look(ref uint32) Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e Entry
	c.visit(ref, c.meta(ref), func(x Entry) Change { e = x; return Change{} })
	return e
}

// Keep undoes Victims: the rows of refs stay and are no longer Taken.
func (c *Cache) Keep(refs []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		c.clearTaken(c.meta(ref))
	}
}

// Bytes returns the memory of the cache with everything that belongs to it.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.bytes
}

// FitRows returns how many rows fit a cache with the options o.
func (o Options) FitRows() int64 { return o.FitRowsIn(o.MaxBytes) }
