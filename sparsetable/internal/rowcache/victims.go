package rowcache

import "runtime"

const (
	// sweepRows is how many rows are examined per acquisition of the mutex. That reads 256 KiB in
	// order and takes about 50 microseconds.
	sweepRows = 16 << 10
	// sparsest bounds the length of a sweep: if fewer victims are wanted than 1/sparsest of the
	// idle rows, the threshold (see below) is set as if that many were. So finding a victim reads about
	// 64 metas, 1 KiB, in order. In return the order in which rows leave is only exact to 1.6 % of
	// the rows: a row may leave now instead of when the sweep comes by the next time. If only clean
	// rows are wanted and there are few of them, finding one costs more.
	sparsest = 64
	// CleanVictims is not limited to the rows that are next to leave. It may take clean rows from
	// the lowest-ranked 1/looseShare of the idle rows, or from the lowest 1/looseShareWindow if the
	// policy has a window: rows that no announced pass needs are missed little, and a caller that
	// cleans rows bucket by bucket finds only a few that are next to leave. In the run p3 of
	// bench/table at 256 MiB, the table then reads 735 buckets a pass for rewriting instead of
	// 1,870.
	looseShare       = 16
	looseShareWindow = 2
)

// threshold says which idle rows are victims: all rows whose rank is below rank, and a share of some / of
// of the rows whose rank is equal to it. The rank of a row is its counter of uses if no announced
// pass needs it. Otherwise the rank is maxUses + 1 + maxAhead - a, where a is the number of groups
// of passes until the row is needed; a is 0 for the group that is being pulled.
type threshold struct {
	rank     uint32
	some, of int64
	sum      int64 // adds up the shares, which spreads the victims over the rows at the threshold
	clean    bool  // only clean rows are taken
}

func needed(a int) uint32 { return uint32(maxUses + 1 + maxAhead - a) }

const highest = maxUses + 1 + maxAhead

// thresholdFor computes the threshold that has n of the counted rows below it.
func (c *Cache) thresholdFor(n int64, of *rankCounts) threshold {
	below := int64(0)
	for u, rows := range &of.byUses {
		if below+rows >= n {
			return threshold{rank: uint32(u), some: n - below, of: rows}
		}
		below += rows
	}
	for a := maxAhead; a >= 0; a-- {
		rows := of.byGroup[c.mu.win.groupAhead(a)]
		if below+rows >= n {
			return threshold{rank: needed(a), some: n - below, of: rows}
		}
		below += rows
	}
	return threshold{rank: highest}
}

// takes reports whether an idle row is a victim.
func (t *threshold) takes(s uint32, w *window) bool {
	rank := uses(s)
	if g := group(s); g != 0 {
		rank = needed(w.ahead(g))
	}
	if rank != t.rank || t.clean { // of equal rank, any clean row will do
		return rank <= t.rank
	}
	if t.sum += t.some; t.sum < t.of {
		return false
	}
	t.sum -= t.of
	return true
}

// Victims appends to dst up to n idle rows, those that the policy would miss least, and marks them
// Taken, so that no other call returns them. Each must be passed to Drop. It examines every row a
// few times at most. If it returns fewer than n, all other rows are pinned or taken.
func (c *Cache) Victims(n int, dst []uint32) []uint32 { return c.victims(n, dst, false) }

// CleanVictims is Victims for clean rows, which cost nothing to drop. It takes them
// from the idle rows that the policy would miss least, 1/looseShare of all of them
// (1/looseShareWindow with a window).
func (c *Cache) CleanVictims(n int, dst []uint32) []uint32 { return c.victims(n, dst, true) }

func (c *Cache) looseShare() int64 {
	if c.rules.window {
		return looseShareWindow
	}
	return looseShare
}

func (c *Cache) victims(n int, dst []uint32, clean bool) []uint32 {
	want := len(dst) + n
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.mu.ranks
	if c.rules.window {
		c.refreshStale()
	}
	if clean {
		if r.clean.rows == 0 {
			return dst
		}
		b := c.thresholdFor(max(int64(n), r.idle.rows/sparsest), &r.clean)
		b.rank = min(b.rank, c.thresholdFor(r.idle.rows/c.looseShare(), &r.idle).rank)
		b.clean = true
		return c.turnLocked(&b, want, dst)
	}
	// Rows that are released or age meanwhile, and passes that are pulled, move the threshold: then
	// another turn finds the rest. The last turn takes any idle row.
	const turns = 3
	for turn := 0; turn < turns && len(dst) < want; turn++ {
		b := c.thresholdFor(max(int64(want-len(dst)), r.idle.rows/sparsest), &r.idle)
		if turn == turns-1 {
			b = threshold{rank: highest}
		}
		dst = c.turnLocked(&b, want, dst)
	}
	return dst
}

// turnLocked examines all rows once, or stops when it has found as many as wanted.
func (c *Cache) turnLocked(b *threshold, want int, dst []uint32) []uint32 {
	for left := int64(len(c.mu.slabs)) << c.shift; left > 0 && len(dst) < want && c.mu.ranks.idle.rows > 0; left -= sweepRows {
		dst = c.sweepLocked(min(left, sweepRows), b, want, dst)
		if left > sweepRows && len(dst) < want {
			c.unlockBriefly()
		}
	}
	return dst
}

// unlockBriefly releases the mutex for a moment. Without the call of the scheduler, waiting
// goroutines would hardly ever get it, because they would have to run before it is locked again.
func (c *Cache) unlockBriefly() {
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
}

// sweepLocked examines the next rows in the order of their references.
func (c *Cache) sweepLocked(rows int64, b *threshold, want int, dst []uint32) []uint32 {
	ref := c.mu.hand
	for rows > 0 && len(dst) < want {
		at := int(ref >> c.shift)
		if at >= len(c.mu.slabs) {
			ref = 0
			continue
		}
		s := &c.mu.slabs[at]
		if in := ref & c.rowMask; s.memory == nil || in >= s.fresh {
			rows -= int64(c.rowMask + 1 - in)
			ref = 0
			if at+1 < len(c.mu.slabs) {
				ref = uint32(at+1) << c.shift
			}
			continue
		}
		rows--
		if m := c.meta(ref); idle(m.state) && (!b.clean || m.state&uint32(Dirty) == 0) {
			c.refresh(m)
			if b.takes(m.state, &c.mu.win) {
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

// refresh ages an idle row. If the pass for which the row was announced came without pulling it,
// refresh notes the next announced pass that needs the row.
func (c *Cache) refresh(m *meta) {
	s := m.state
	if g := group(s); g != 0 && c.mu.win.ahead(g) == past {
		s = withGroup(s, c.mu.win.next(c.hash(m.key)))
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

// refreshStale refreshes the rows that were announced for passes which came without pulling them,
// if there are many. Then the pulled keys differ from the announced ones. There are always a few
// such rows, because the window's Bloom filters have false positives; sweeps refresh those.
func (c *Cache) refreshStale() {
	r := &c.mu.ranks
	known := int64(0)
	for _, rows := range &r.idle.byUses {
		known += rows
	}
	for a := range maxAhead + 1 {
		known += r.idle.byGroup[c.mu.win.groupAhead(a)]
	}
	for i := 0; r.idle.rows-known > r.idle.rows/sparsest && i < len(c.mu.slabs); i++ {
		if c.mu.slabs[i].memory == nil {
			continue
		}
		for in := range c.mu.slabs[i].fresh {
			if m := c.meta(uint32(i)<<c.shift | in); idle(m.state) {
				c.refresh(m)
			}
		}
		c.unlockBriefly()
	}
}

// Drop completes an eviction that Victims began. All of refs must be Taken. Those that are clean
// and not pinned leave the cache; the others stay and are no longer Taken. It returns the number of
// rows that left.
func (c *Cache) Drop(refs []uint32) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		m := c.meta(ref)
		c.clearTaken(m)
		if m.state&(pinMask|uint32(Dirty)) != 0 {
			continue
		}
		c.mu.ranks.remove(m.state)
		c.change(m, m.state&^uint32(Mark2))
		c.unlink(ref, m)
		c.put(ref, m)
		dropped++
	}
	c.mu.stats.Evictions += int64(dropped)
	return dropped
}

func (c *Cache) clearTaken(m *meta) {
	if m.state&uint32(Taken) == 0 {
		panic("rowcache: the row was not handed out by Victims")
	}
	m.state &^= uint32(Taken)
	c.mu.taken--
	if idle(m.state) {
		c.mu.ranks.add(m.state)
	}
}
