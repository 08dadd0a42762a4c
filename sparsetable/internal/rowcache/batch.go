package rowcache

// Visit calls fn(i, row) for the row of each refs[i]. It skips references that are 0; the others
// must be of live rows. fn is called under the mutex, which Visit releases now and then, so fn must
// be quick and must not call the cache.
func (c *Cache) Visit(refs []uint32, fn func(i int, e Entry) Change) {
	for from := 0; from < len(refs); from += lockKeys {
		to := min(from+lockKeys, len(refs))
		c.mu.Lock()
		for i := from; i < to; i++ {
			if (i-from)%ahead == 0 { // load several metas side by side
				var states uint32
				for _, ref := range refs[i:min(i+ahead, to)] {
					states |= c.meta(ref).state
				}
				c.mu.touched = states
			}
			if ref := refs[i]; ref != 0 {
				c.visit(ref, c.meta(ref), func(e Entry) Change { return fn(i, e) })
			}
		}
		c.mu.Unlock()
	}
}

// leavingShare defines the idle rows that are likely to leave soon: the 1/leavingShare of them that
// the policy would miss least. In the job of docs/performance.md whose table is on SSD, shares from
// a third to a sixteenth made the elevator read 1.92 to 1.96 buckets an example, a half 2.13, and
// all rows 2.21. With all rows, just as few rows left dirty and cost a separate read.
const leavingShare = 4

// VisitLeaving calls fn for those of refs that now hold one of the idle rows that leave first,
// 1/leavingShare of them. The rows that the caller means may have left the cache, and even their
// slabs may be gone; other rows may have taken their places, so fn must check the key. fn is called
// under the mutex, see Visit.
func (c *Cache) VisitLeaving(refs []uint32, fn func(e Entry)) {
	for len(refs) > 0 {
		n := min(len(refs), lockKeys)
		c.mu.Lock()
		last := c.thresholdFor(max(1, c.mu.ranks.idle.rows/leavingShare), &c.mu.ranks.idle).rank
		for i, ref := range refs[:n] {
			if i%ahead == 0 {
				for _, ref := range refs[i:min(i+ahead, n)] {
					if c.usedLocked(ref) {
						c.mu.touched |= c.meta(ref).state
					}
				}
			}
			if !c.usedLocked(ref) {
				continue
			}
			if m := c.meta(ref); idle(m.state) && c.mu.win.ahead(group(m.state)) < 0 && uses(m.state) <= last {
				c.visit(ref, m, func(e Entry) Change {
					fn(e)
					return Change{}
				})
			}
		}
		c.mu.Unlock()
		refs = refs[n:]
	}
}

// usedLocked reports whether there is a row at ref or ever was one.
func (c *Cache) usedLocked(ref uint32) bool {
	at := int(ref >> c.shift)
	return ref != 0 && at < len(c.mu.slabs) && c.mu.slabs[at].memory != nil && ref&c.rowMask < c.mu.slabs[at].fresh
}

// DropIf drops the idle rows for which fn returns true, dirty or not, and returns their number. fn
// is called under the mutex, see Visit.
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
			drop := false
			c.visit(ref, m, func(e Entry) Change {
				drop = fn(e)
				return Change{}
			})
			if drop {
				c.change(m, m.state&^uint32(Dirty|Mark2))
				c.mu.ranks.remove(m.state)
				c.unlink(ref, m)
				c.put(ref, m)
				dropped++
			}
			if in%lockKeys == lockKeys-1 {
				c.unlockBriefly()
			}
		}
	}
	return dropped
}

// MinBytes is the smallest MaxBytes that is valid together with the other options.
func (o Options) MinBytes() int64 {
	o.MaxBytes = 0
	for {
		need := o.geometry().minBytes() + o.WindowBytes()
		if need <= o.MaxBytes {
			return need
		}
		o.MaxBytes = need
	}
}

// WindowBytes is the most bytes that the tables for announced passes may take.
func (o Options) WindowBytes() int64 {
	if r, err := policyNamed(o.Policy); err != nil || !r.window {
		return 0
	}
	return o.MaxBytes / WindowShare
}

// FitRowsIn is how many rows a cache of o holds after SetMaxBytes has lowered its limit to bytes,
// or 0 if SetMaxBytes refuses that limit. Slabs keep their original size, and the directory counts
// with the size to which it may have grown before.
func (o Options) FitRowsIn(bytes int64) int64 {
	g := o.geometry()
	if bytes < g.minBytes() {
		return 0
	}
	// slabs is how many slabs fit, including their share of the directory.
	slabs := func(bytes int64) int64 {
		left := bytes - o.WindowBytes() - g.fixed
		n := min(left/g.slabBytes, g.maxSlabs)
		for n > 0 && n*g.slabBytes+segmentBytes*segmentsFor(n<<g.shift) > left {
			n--
		}
		return n
	}
	most := slabs(o.MaxBytes)
	n := min(most, (bytes-o.WindowBytes()-g.fixed-segmentBytes*segmentsFor(most<<g.shift))/g.slabBytes)
	return max(0, n<<g.shift-1)
}
