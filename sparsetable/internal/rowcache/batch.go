package rowcache

// Visit calls fn for refs[i], with i; 0 is passed over. All must be live. fn is
// called under the mutex, which is given back now and then: it must be quick
// and not call the cache.
func (c *Cache) Visit(refs []uint32, fn func(i int, e Entry) Change) {
	for from := 0; from < len(refs); from += lockKeys {
		to := min(from+lockKeys, len(refs))
		c.mu.Lock()
		for i := from; i < to; i++ {
			if ref := refs[i]; ref != 0 {
				c.visit(ref, c.meta(ref), func(e Entry) Change { return fn(i, e) })
			}
		}
		c.mu.Unlock()
	}
}

// VisitFrom calls fn under the mutex for the live rows among the next places of
// the cache, at most that many, in order of reference from `from` on. It
// returns where to go on, and whether that is the end.
func (c *Cache) VisitFrom(from uint32, places int, fn func(Entry) Change) (next uint32, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := from; ; places-- {
		at := int(ref >> c.shift)
		if at >= len(c.mu.slabs) {
			return 0, true
		}
		s := &c.mu.slabs[at]
		if s.memory == nil || ref&c.rowMask >= s.fresh {
			if at+1 >= len(c.mu.slabs) {
				return 0, true
			}
			ref = uint32(at+1) << c.shift
			continue
		}
		if places <= 0 {
			return ref, false
		}
		if m := c.meta(ref); m.state&uint32(Live) != 0 {
			c.visit(ref, m, fn)
		}
		ref++ // the last row's slab ends the loop above before this wraps
		if ref == 0 {
			return 0, true
		}
	}
}

// DropIf drops the idle rows that fn condemns, dirty or not, and returns their
// number. fn is called under the mutex, see Visit.
func (c *Cache) DropIf(fn func(Entry) bool) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; i < len(c.mu.slabs); i++ {
		for in := uint32(0); c.mu.slabs[i].memory != nil && in < c.mu.slabs[i].fresh; in++ {
			ref := uint32(i)<<c.shift | in
			m := c.meta(ref)
			if !idle(m.state) {
				continue
			}
			condemned := false
			c.visit(ref, m, func(e Entry) Change {
				condemned = fn(e)
				return Change{}
			})
			if condemned {
				c.change(m, m.state&^uint32(Dirty|Mark2))
				c.mu.ranks.remove(m.state)
				c.unlink(ref, m)
				c.put(ref, m)
				dropped++
			}
			if in%lockKeys == lockKeys-1 {
				c.mu.Unlock()
				c.mu.Lock()
			}
		}
	}
	return dropped
}

// MinBytes is the smallest MaxBytes that o could have, with the others as they
// are.
func (o Options) MinBytes() int64 {
	o.MaxBytes = 0
	for {
		need := o.geometry().minBytes() + o.windowBytes()
		if need <= o.MaxBytes {
			return need
		}
		o.MaxBytes = need
	}
}

// windowBytes is what the policy may take for what is announced.
func (o Options) windowBytes() int64 {
	if r, err := policyNamed(o.Policy); err != nil || !r.window {
		return 0
	}
	return o.MaxBytes / windowShare
}

// FitRows is how many rows a cache of o holds.
func (o Options) FitRows() int64 {
	g := o.geometry()
	left := o.MaxBytes - o.windowBytes() - g.fixed
	slabs := min(left/g.slabBytes, g.maxSlabs)
	for slabs > 0 && slabs*g.slabBytes+segmentBytes*segmentsFor(slabs<<g.shift) > left {
		slabs--
	}
	return max(0, slabs<<g.shift-1)
}
