package rowcache

import "iter"

// A save writes all dirty rows as they are at one instant, while work goes on. It begins by marking
// these rows. Marking each of them would take time that grows with the number of rows. Instead,
// every row has a bit that is compared with one bit of the cache, the parity, and a row is Old if
// the two differ. BeginSave flips the parity, which makes all rows in the cache Old at once. A
// row's bit is set equal to the parity when the row is inserted, when it goes from clean to dirty,
// and when the caller says that it is saved (Change with Clear: Old). So after BeginSave
//
//	dirty and Old      means that the row was dirty at BeginSave and is still to
//	                   be saved; the code calls such a row unsaved
//	clean and Old      means that it was clean then and has not changed since
//	not Old            means that it is saved, or was changed or inserted since
//
// An unsaved row must be saved before it changes or becomes clean. The cache counts these rows,
// so that the caller knows when all are saved even though Shrink moves rows. There must be none at
// the next BeginSave, because they would count as saved from then on. Rows that are clean and Old
// may remain: after the next BeginSave they are merely no longer Old.

func (c *Cache) flags(state uint32) Flags { return Flags((state ^ c.mu.parity) & flagMask) }

func (c *Cache) notOld(state uint32) uint32 { return state&^uint32(Old) | c.mu.parity }

func (c *Cache) unsaved(state uint32) bool {
	return c.flags(state)&(Dirty|Old) == Dirty|Old
}

// BeginSave makes all rows Old (see above) in constant time.
func (c *Cache) BeginSave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.unsaved != 0 {
		panic("rowcache: dirty rows of the last BeginSave were not saved")
	}
	c.mu.parity ^= uint32(Old)
	c.mu.unsaved = c.mu.dirty
}

// Unsaved is the number of rows that are dirty and Old, so still to be saved.
func (c *Cache) Unsaved() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.unsaved
}

// Pick chooses the rows that have all flags of Has and none of Lacks, and that were
// used at least MinUses times. If Idle is set, it chooses only rows that are neither
// pinned nor taken, so that their words do not change while a visitor reads them.
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

// atLeast is the smallest encoded counter that stands for n uses or more.
func atLeast(n int) uint32 {
	u := encodeUses(uint32(max(n, 0)))
	if int(decodeUses(u)) < n && u < maxUses {
		u++
	}
	return u
}

// VisitFrom calls fn for up to most rows that p picks, in the order of their references, starting
// at from. It holds the mutex, so fn must be quick and must not call the cache. It returns the
// reference at which to continue, and whether all rows were visited. It also returns after it has
// examined sweepRows rows, so that others get the mutex.
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

// UsesHistogram counts rows by the value of their counter of uses.
type UsesHistogram struct {
	rows  [maxUses + 1]int64
	total int64
}

// Histogram counts the rows that p picks. Rows that are inserted, dropped or changed while it runs
// may be missed or counted twice.
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
				c.unlockBriefly()
				looks = sweepRows
			}
		}
	}
	return h
}

// Rows is the number of all rows.
func (h *UsesHistogram) Rows() int64 { return h.total }

// Classes divides the most used rows, up to the given number, into classes of about equal size. It
// yields the smallest number of uses in each class, in descending order. Rows that were used
// equally often are in the same class.
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

// Reinsert is Insert for rows that were in a cache before: with every policy their
// count of uses starts from used.
func (c *Cache) Reinsert(keys, hashes []uint64, used []uint32, refs []uint32, mark2 bool) (added int, err error) {
	return c.insert(keys, hashes, used, refs, mark2)
}

// Contains sets in[i] to whether keys[i] is cached. hashes has the hashes of keys; all slices have
// the same length. Contains does not count as a use of the rows.
func (c *Cache) Contains(keys, hashes []uint64, in []bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var refs [ahead]uint32
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.mu.touched = c.locate(keys[:n], hashes[:n], refs[:n])
		for i, ref := range refs[:n] {
			in[i] = ref != 0
		}
		keys, hashes, in = keys[n:], hashes[n:], in[n:]
	}
}
