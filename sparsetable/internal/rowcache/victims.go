package rowcache

import "runtime"

const (
	// sweepRows is how many rows are looked at under one hold of the mutex,
	// some 50 microseconds: 256 KiB read in order.
	sweepRows = 16 << 10
	// sparsest bounds the sweep: the bar is set as if one idle row in so many
	// had been asked for, or more. So a victim costs about 64 rows looked at,
	// 1 KiB read in order, and the order of leaving is exact to 1.6 % of the
	// rows: what leaves at one turn of the hand would leave in the next. Where
	// only clean ones are wanted and these are fewer, one costs more.
	sparsest = 64
	// CleanVictims may go beyond the rows that are next to leave, to the lowest
	// idle row in looseShare; with a window, in looseShareWindow: what no announced
	// pass needs is missed little, and whoever cleans rows on a way round all of
	// them comes by a few of those next to leave only. In p3 of bench/table at 256
	// MiB that is 735 buckets read for rewriting a pass instead of 1,870.
	looseShare       = 16
	looseShareWindow = 2
)

// bar says which idle rows are victims: all that rank below it, and of those
// at it the share some / of. A row's rank is the number of its uses, above that
// maxAhead + 1 - a where an announced pass needs it a groups ahead, 0 being the
// pass that is pulled right now.
type bar struct {
	rank     uint32
	some, of int64
	sum      int64 // of shares, to spread the victims among the rows at the bar
	clean    bool  // only clean rows are taken
}

func needed(a int) uint32 { return uint32(maxUses + 1 + maxAhead - a) }

const highest = maxUses + 1 + maxAhead

// barFor finds the bar for n rows of those that are counted.
func (c *Cache) barFor(n int64, of *rankCounts) bar {
	below := int64(0)
	for u, rows := range &of.byUses {
		if below+rows >= n {
			return bar{rank: uint32(u), some: n - below, of: rows}
		}
		below += rows
	}
	for a := maxAhead; a >= 0; a-- {
		rows := of.byGroup[c.mu.win.groupAhead(a)]
		if below+rows >= n {
			return bar{rank: needed(a), some: n - below, of: rows}
		}
		below += rows
	}
	return bar{rank: highest}
}

// takes reports whether an idle row is a victim.
func (b *bar) takes(s uint32, w *window) bool {
	rank := uses(s)
	if g := group(s); g != 0 {
		rank = needed(w.ahead(g))
	}
	if rank != b.rank || b.clean { // of equal rank, any clean row will do
		return rank <= b.rank
	}
	if b.sum += b.some; b.sum < b.of {
		return false
	}
	b.sum -= b.of
	return true
}

// Victims appends to dst up to n idle rows, those that the policy misses
// least, and marks them Taken, so that no other call returns them. Each must be
// given to Drop or Keep. It looks at every row a few times at most; fewer than n
// means that the others are pinned or taken.
func (c *Cache) Victims(n int, dst []uint32) []uint32 { return c.victims(n, dst, false) }

// CleanVictims is Victims among the rows that cost nothing to drop: clean ones,
// as long as they are among those idle rows that the policy misses least, one in
// looseShare of all.
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
		b := c.barFor(max(int64(n), r.idle.rows/sparsest), &r.clean)
		b.rank = min(b.rank, c.barFor(r.idle.rows/c.looseShare(), &r.idle).rank)
		b.clean = true
		return c.turnLocked(&b, want, dst)
	}
	// Rows released and passes pulled meanwhile, and rows that aged, move the
	// bar: then another turn finds the rest. The last one takes what there is.
	const turns = 3
	for turn := 0; turn < turns && len(dst) < want; turn++ {
		b := c.barFor(max(int64(want-len(dst)), r.idle.rows/sparsest), &r.idle)
		if turn == turns-1 {
			b = bar{rank: highest}
		}
		dst = c.turnLocked(&b, want, dst)
	}
	return dst
}

// turnLocked goes once round all rows, or until it has found what is wanted.
func (c *Cache) turnLocked(b *bar, want int, dst []uint32) []uint32 {
	for left := int64(len(c.mu.slabs)) << c.shift; left > 0 && len(dst) < want && c.mu.ranks.idle.rows > 0; left -= sweepRows {
		dst = c.sweepLocked(min(left, sweepRows), b, want, dst)
		if left > sweepRows && len(dst) < want {
			c.letOthersLocked()
		}
	}
	return dst
}

// letOthersLocked gives up the mutex for a moment. Without the call of the
// scheduler those who wait for it hardly ever got it: they would have to run
// before it is locked again.
func (c *Cache) letOthersLocked() {
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
}

// sweepLocked looks at the next rows in order of their references.
func (c *Cache) sweepLocked(rows int64, b *bar, want int, dst []uint32) []uint32 {
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

// refresh lets an idle row age, and forgets a pass that came and did not need
// it after all.
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

// refreshStale finds the rows that were announced for passes that came without
// them, if they are many: pulls differ from what was announced. A few there are
// always, as the window's filters say yes by mistake; sweeps come upon those.
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
		c.letOthersLocked()
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
		c.change(m, m.state&^uint32(Mark2))
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
