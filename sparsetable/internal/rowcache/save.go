package rowcache

import "iter"

// Saving all dirty rows as they are at one instant, while work goes on, begins
// by naming them. To mark each would take as long as there are rows; instead,
// every row has a bit that is compared with one bit of the cache, the parity.
// BeginSave turns the parity around: at once, whatever is in the cache is Old.
// A row's bit becomes equal to the parity when it comes into the cache, when it
// goes from clean to dirty, and when the caller says that it is saved (Change
// with Clear: Old). So from then on
//
//	dirty and Old      it was dirty at BeginSave and is to be saved (Owed)
//	clean and Old      it was clean then and has not changed since
//	not Old            saved, or not of interest: changed or inserted since
//
// A row that is dirty and Old must be saved before it changes or becomes clean;
// the cache counts them, so that the caller knows when all are through, although
// Shrink moves rows about. At the next BeginSave there must be none, or they
// would pass for saved. Rows that are clean and Old may be left: they are not
// Old after it, which costs the caller that knowledge of them and nothing else.

func (c *Cache) flags(state uint32) Flags { return Flags((state ^ c.mu.parity) & flagMask) }

func (c *Cache) notOld(state uint32) uint32 { return state&^uint32(Old) | c.mu.parity }

func (c *Cache) owed(state uint32) bool {
	return c.flags(state)&(Dirty|Old) == Dirty|Old
}

// BeginSave makes all rows Old, see above, in a time that does not depend on
// their number.
func (c *Cache) BeginSave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.owed != 0 {
		panic("rowcache: dirty rows of the last BeginSave were not saved")
	}
	c.mu.parity ^= uint32(Old)
	c.mu.owed = c.mu.dirty
}

// Owed is the number of rows that are dirty and Old.
func (c *Cache) Owed() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.owed
}

// Pick chooses rows: those that have all flags of Has and none of Lacks, were
// used so often, and if Idle is set are pinned by nobody nor taken, so that
// their words hold still while a visitor looks.
type Pick struct {
	Has, Lacks Flags
	Idle       bool
	MinUses    int
}

// picked reports whether a row is chosen; minUses is encoded.
func (c *Cache) picked(p *Pick, minUses, state uint32) bool {
	f := c.flags(state)
	return f&(p.Has|Live) == p.Has|Live && f&p.Lacks == 0 && uses(state) >= minUses && (!p.Idle || idle(state))
}

// atLeast is the smallest counter of that many uses.
func atLeast(n int) uint32 {
	u := encodeUses(uint32(max(n, 0)))
	if int(decodeUses(u)) < n && u < maxUses {
		u++
	}
	return u
}

// VisitFrom calls fn for rows that p picks, at most that many, in order of
// reference from `from` on, under the mutex: fn must be quick and not call the
// cache. It returns where to go on, and whether that is the end; it also returns
// after a number of rows that were not picked, so that others get the mutex.
func (c *Cache) VisitFrom(from uint32, p Pick, most int, fn func(Entry) Change) (next uint32, end bool) {
	minUses := atLeast(p.MinUses)
	c.mu.Lock()
	defer c.mu.Unlock()
	looks := sweepRows
	for at, in := int(from>>c.shift), from&c.rowMask; at < len(c.mu.slabs); at, in = at+1, 0 {
		s := &c.mu.slabs[at]
		if s.memory == nil {
			continue
		}
		for ; in < s.fresh; in++ {
			ref := uint32(at)<<c.shift | in
			if looks == 0 || most == 0 {
				return ref, false
			}
			looks--
			if m := c.meta(ref); c.picked(&p, minUses, m.state) {
				most--
				c.visit(ref, m, fn)
			}
		}
	}
	return 0, true
}

// UsesHistogram says how many rows have each counter of uses.
type UsesHistogram struct {
	rows  [maxUses + 1]int64
	total int64
}

// Histogram counts the rows that p picks. Those that come, go or change while it
// runs may be missed or counted twice.
func (c *Cache) Histogram(p Pick) (h UsesHistogram) {
	minUses := atLeast(p.MinUses)
	c.mu.Lock()
	defer c.mu.Unlock()
	looks := sweepRows
	for at := 0; at < len(c.mu.slabs); at++ {
		for in := uint32(0); c.mu.slabs[at].memory != nil && in < c.mu.slabs[at].fresh; in++ {
			if s := c.meta(uint32(at)<<c.shift | in).state; c.picked(&p, minUses, s) {
				h.rows[uses(s)]++
				h.total++
			}
			if looks--; looks == 0 {
				c.letOthersLocked()
				looks = sweepRows
			}
		}
	}
	return h
}

// Rows is the number of all rows.
func (h *UsesHistogram) Rows() int64 { return h.total }

// Classes cuts the most used rows, that many of them, into classes of about
// equal size: it yields the smallest number of uses of each, in descending
// order. Rows that were used equally often are not told apart.
func (h *UsesHistogram) Classes(rows int64, classes int) iter.Seq[int] {
	return func(yield func(minUses int) bool) {
		rows := min(rows, h.total)
		above, next := int64(0), int64(1)
		for u := maxUses; u >= 0 && next <= int64(classes) && rows > 0; u-- {
			above += h.rows[u]
			if above*int64(classes) < next*rows {
				continue
			}
			if !yield(int(decodeUses(uint32(u)))) {
				return
			}
			for next <= int64(classes) && above*int64(classes) >= next*rows {
				next++
			}
		}
	}
}

// Reinsert is Insert for rows that were in a cache before: whatever the policy,
// they count on from used.
func (c *Cache) Reinsert(keys, hashes []uint64, used []uint32, refs []uint32) (added int, err error) {
	return c.insert(keys, hashes, used, refs)
}

// Contains sets in[i] to whether keys[i] is cached. hashes are those of keys, and
// in is as long. It is no use of the rows.
func (c *Cache) Contains(keys, hashes []uint64, in []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var refs [ahead]uint32
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.locate(keys[:n], hashes[:n], refs[:n])
		for i, ref := range refs[:n] {
			in[i] = ref != 0
		}
		keys, hashes, in = keys[n:], hashes[n:], in[n:]
	}
}
