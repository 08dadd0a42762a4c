package rowcache

import "fmt"

// Check recounts the rows, compares the result with the cache's counters, and checks that every row
// is in its chain. It is for tests: it holds the mutex all the time, and its time grows with the
// number of rows.
func (c *Cache) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rows, dirty, marked2, saved, taken, unsaved int64
	var want ranks
	for i := range c.mu.slabs {
		s := &c.mu.slabs[i]
		if s.memory == nil {
			continue
		}
		used := uint32(0)
		for in := range s.fresh {
			ref := uint32(i)<<c.shift | in
			m := c.meta(ref)
			if m.state&uint32(Live) == 0 {
				continue
			}
			used++
			rows++
			if m.state&uint32(Dirty) != 0 {
				dirty++
			}
			if m.state&uint32(Mark2) != 0 {
				marked2++
			}
			if m.state&uint32(Saved) != 0 {
				if m.state&uint32(Dirty) == 0 {
					return fmt.Errorf("rowcache: row %d is Saved, but not dirty", ref)
				}
				saved++
			}
			if m.state&uint32(Taken) != 0 {
				taken++
			}
			if n, more := c.mu.morePins[ref]; more && (n == 0 || pins(m.state) != maxPins) {
				return fmt.Errorf("rowcache: row %d has %d pins in its state and %d beyond", ref, pins(m.state), n)
			}
			if c.unsaved(m.state) {
				unsaved++
			}
			if idle(m.state) {
				want.add(m.state)
			}
			if !c.inChainLocked(ref, m) {
				return fmt.Errorf("rowcache: key %d, row %d, is not in its chain", m.key, ref)
			}
		}
		if i == 0 && s.used == used+1 { // the zero row
			used++
		}
		if s.used != used {
			return fmt.Errorf("rowcache: slab %d counts %d rows, but has %d", i, s.used, used)
		}
	}
	for _, n := range []struct {
		what       string
		have, want int64
	}{
		{"rows", c.mu.rows, rows}, {"dirty rows", c.mu.dirty, dirty}, {"rows with Mark2", c.mu.marked2, marked2}, {"rows with Saved", c.mu.saved, saved},
		{"taken rows", c.mu.taken, taken}, {"rows that are still to be saved", c.mu.unsaved, unsaved}, {"bytes", c.mu.bytes, c.countBytesLocked()},
	} {
		if n.have != n.want {
			return fmt.Errorf("rowcache: the cache counts %d %s, but there are %d", n.have, n.what, n.want)
		}
	}
	if want != c.mu.ranks {
		return fmt.Errorf("rowcache: the counts of idle rows by rank are wrong: the cache counts %d idle rows, %d of them clean, but there are %d and %d",
			c.mu.ranks.idle.rows, c.mu.ranks.clean.rows, want.idle.rows, want.clean.rows)
	}
	return nil
}

// inChainLocked reports whether a row is in the chain of its key, with no other row of that key
// before it.
func (c *Cache) inChainLocked(ref uint32, m *meta) bool {
	for at := *c.mu.dir.head(c.mu.dir.chain(c.hash(m.key))); at != 0; at = c.meta(at).next {
		if at == ref {
			return true
		}
		if c.meta(at).key == m.key {
			return false
		}
	}
	return false
}

// countBytesLocked sums up all mapped memory and the cache's fixed part.
func (c *Cache) countBytesLocked() int64 {
	n := c.fixed + int64(len(c.mu.morePins))*morePinsBytes
	for i := range c.mu.slabs {
		n += int64(len(c.mu.slabs[i].memory))
	}
	n += 4 * headsPerSegment * c.mu.dir.segs
	return n + int64(len(c.mu.win.memory))
}
