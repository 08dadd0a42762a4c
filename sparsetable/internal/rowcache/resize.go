package rowcache

import (
	"fmt"

	"aibox/sparsetable/internal/offheap"
)

// SetMaxBytes changes the budget, at most to the one that the cache was made with, so that other
// users of the same memory can grow and shrink. If the cache holds more than the new budget, Shrink
// gives the excess back.
func (c *Cache) SetMaxBytes(n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if need := c.leastLocked(); n < need {
		return fmt.Errorf("rowcache: budget of %d bytes: want at least %d", n, need)
	}
	c.mu.maxBytes = n
	return nil
}

// LeastBytes is the smallest budget that SetMaxBytes accepts at present.
func (c *Cache) LeastBytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leastLocked()
}

func (c *Cache) leastLocked() int64 { return c.minBytes() + c.mu.win.bytes() }

// Shrink takes a step towards the budget and reports whether the cache is now within it, including
// the room that the window of announced passes waits for. It empties one slab at a time, the one
// with the fewest rows, by moving its idle rows into free rows of other slabs, and gives its memory
// back once the slab is empty. Rows that are pinned or taken, or a lack of free rows, stop it, and
// it returns false. So the caller drops victims before the first and each further call.
func (c *Cache) Shrink() (kept bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.mu.bytes > c.budget() {
		if c.mu.retired < 0 && !c.retireLocked() {
			return false, nil
		}
		if !c.emptyLocked() {
			return false, nil
		}
		if err := c.unmapLocked(); err != nil {
			return false, err
		}
	}
	if at := c.mu.retired; at >= 0 { // the budget grew meanwhile
		c.mu.retired = -1
		c.list(uint32(at))
	}
	return true, nil
}

// retireLocked chooses the slab to empty. The one with the zero row stays.
func (c *Cache) retireLocked() bool {
	best := -1
	for i := 1; i < len(c.mu.slabs); i++ {
		s := &c.mu.slabs[i]
		if s.memory != nil && (best < 0 || s.used < c.mu.slabs[best].used) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	c.mu.retired = best
	c.mu.slabs[best].listed = false
	for i, at := range c.mu.open {
		if int(at) == best {
			c.mu.open = append(c.mu.open[:i], c.mu.open[i+1:]...)
			break
		}
	}
	return true
}

// emptyLocked moves rows out of the retired slab and reports whether none is
// left.
func (c *Cache) emptyLocked() bool {
	at := c.mu.retired
	s := &c.mu.slabs[at]
	for in := uint32(0); in < s.fresh && s.used > 0; in++ {
		from := uint32(at)<<c.shift | in
		m := c.meta(from)
		if !idle(m.state) {
			continue
		}
		to, ok := c.takeMapped()
		if !ok {
			return false
		}
		hash := c.hash(m.key)
		c.unlink(from, m)
		n := c.meta(to)
		n.key, n.state = m.key, m.state
		copy(c.row(to), c.row(from))
		c.put(from, m)
		c.link(to, n, hash)
	}
	return s.used == 0
}

// takeMapped returns a free row of the slabs that are already mapped.
func (c *Cache) takeMapped() (ref uint32, ok bool) {
	kept := c.mu.maxBytes
	c.mu.maxBytes = 0
	ref, err := c.take()
	c.mu.maxBytes = kept
	return ref, err == nil
}

func (c *Cache) unmapLocked() error {
	at := c.mu.retired
	b := c.mu.slabs[at].memory
	c.mu.slabs[at] = slab{}
	c.mu.metas[at] = nil
	c.mu.floats[at] = nil
	c.mu.retired = -1
	c.mu.bytes -= c.slabBytes
	if err := offheap.Discard(b); err != nil {
		return fmt.Errorf("rowcache: give back a slab: %w", err)
	}
	return nil
}
