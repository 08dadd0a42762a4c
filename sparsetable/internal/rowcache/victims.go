package rowcache

const (
	// sweepRows is how many rows are looked at under one hold of the mutex,
	// some 50 microseconds: 256 KiB read in order.
	sweepRows = 16 << 10
	// sparsest bounds the sweep: at least one idle row in so many counts as a
	// victim, though fewer were asked for. So a victim costs at most about 64
	// rows looked at, 1 KiB read in order, and the order of leaving is exact to
	// 1.6 % of the rows.
	sparsest = 64
)

// bar says which idle rows are victims.
type bar struct {
	uses  uint32 // those that no announced pass needs, used no more often
	ahead uint32 // those that are needed so many groups ahead, or more; 0: none
}

// barFor finds the bar that n rows are below.
func (c *Cache) barFor(n int64) bar {
	r := &c.mu.ranks
	n = max(n, r.idle/sparsest)
	have := int64(0)
	for u, rows := range &r.byUses {
		if have += rows; have >= n {
			return bar{uses: uint32(u)}
		}
	}
	// All rows that nobody needs, and of the others those needed last.
	b := bar{uses: maxUses, ahead: 1}
	for a := uint32(maxAhead); a >= 1; a-- {
		if have += r.byGroup[c.mu.win.groupAhead(a)]; have >= n {
			b.ahead = a
			break
		}
	}
	return b
}

// Victims appends to dst up to n idle rows, those that the policy misses
// least, and marks them Taken, so that no other call returns them. Each must be
// given to Drop or Keep. It looks at every row once at most; fewer than n means
// that the others are pinned or taken.
func (c *Cache) Victims(n int, dst []uint32) []uint32 {
	want := len(dst) + n
	c.mu.Lock()
	defer c.mu.Unlock()
	// A second turn is needed where the bar has to be lowered.
	for range 2 {
		left := int64(len(c.mu.slabs)) << c.shift
		for left > 0 && len(dst) < want && c.mu.ranks.idle > 0 {
			look := min(left, sweepRows)
			b := c.barFor(int64(want - len(dst)))
			dst = c.sweepLocked(look, b, want, dst)
			left -= look
			if left > 0 && len(dst) < want {
				c.mu.Unlock() // let others have it
				c.mu.Lock()
			}
		}
	}
	return dst
}

// sweepLocked looks at the next rows in order of their references.
func (c *Cache) sweepLocked(rows int64, b bar, want int, dst []uint32) []uint32 {
	ref := c.mu.hand
	for rows > 0 && len(dst) < want {
		slabAt := int(ref >> c.shift)
		if slabAt >= len(c.mu.slabs) {
			ref = 0
			continue
		}
		in := ref & c.rowMask
		s := &c.mu.slabs[slabAt]
		if s.memory == nil || in >= s.fresh {
			rows -= int64(c.rowMask + 1 - in)
			ref = uint32(slabAt+1) << c.shift
			if slabAt+1 == len(c.mu.slabs) {
				ref = 0
			}
			continue
		}
		rows--
		if m := c.meta(ref); idle(m.state) {
			c.refresh(m)
			if c.below(m.state, b) {
				c.mu.ranks.remove(m.state)
				m.state |= uint32(Taken)
				c.mu.taken++
				dst = append(dst, ref)
			}
		}
		ref++
	}
	c.mu.hand = ref
	return dst
}

func (c *Cache) below(s uint32, b bar) bool {
	if g := group(s); g != 0 {
		return b.ahead != 0 && c.mu.win.ahead(g) >= b.ahead
	}
	return uses(s) <= b.uses
}

// refresh lets an idle row age, and forgets a pass that came and did not need
// it after all.
func (c *Cache) refresh(m *meta) {
	s := m.state
	if g := group(s); g != 0 && c.mu.win.ahead(g) == 0 {
		s = withGroup(s, 0)
	}
	if age := (c.mu.epoch - epoch(s)) % epochCount; age >= 2 && c.rules.aging {
		u := uses(s)
		for range age - 1 {
			u = halveUses(u)
		}
		s = withEpoch(withUses(s, u), (c.mu.epoch-1)%epochCount)
	}
	if s != m.state {
		c.mu.ranks.remove(m.state)
		c.mu.ranks.add(s)
		m.state = s
	}
}

// Drop ends what Victims began: of refs, all Taken, those that are clean and
// pinned by nobody leave the cache. The others stay, no longer Taken. It
// returns the number that left.
func (c *Cache) Drop(refs []uint32) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		m := c.meta(ref)
		c.untake(m)
		if m.state&(pinMask|uint32(Dirty)) != 0 {
			continue
		}
		c.mu.ranks.remove(m.state)
		c.unlink(ref, m)
		c.put(ref, m)
		dropped++
	}
	c.mu.stats.Evictions += int64(dropped)
	return dropped
}

// Keep ends what Victims began: refs stay.
func (c *Cache) Keep(refs []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		c.untake(c.meta(ref))
	}
}

func (c *Cache) untake(m *meta) {
	if m.state&uint32(Taken) == 0 {
		panic("rowcache: the row was not handed out by Victims")
	}
	m.state &^= uint32(Taken)
	c.mu.taken--
	if idle(m.state) {
		c.mu.ranks.add(m.state)
	}
}
