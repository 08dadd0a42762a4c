package rowcache

// Entry is a cached row as visitors see it.
type Entry struct {
	Ref    uint32
	Key    uint64
	Flags  Flags
	Pins   int       // passes that hold it; its words may be read only if there are none
	Uses   int       // as the policy counts them
	Needed bool      // by an announced pass
	Row    []float32 // valid during the call
}

// Change is a visitor's change to a row's flags. Dirty, Mark2 and (on a dirty row) Saved may be set
// and cleared; Old may only be cleared.
type Change struct{ Set, Clear Flags }

const changeable = Dirty | Mark2 | Saved

func (c *Cache) changed(state uint32, ch Change) uint32 {
	if ch.Clear&Old != 0 {
		state = c.notOld(state)
	}
	return state&^uint32(ch.Clear&changeable) | uint32(ch.Set&changeable)
}

// change gives a row a new state. The state of an idle row may differ from the old
// one only in its flags Dirty, Old, Mark2 and Saved, because its rank must not change.
func (c *Cache) change(m *meta, state uint32) {
	state = c.settled(m.state, state)
	c.count(&c.mu.tally, m.state, state)
	m.state = state
}

// settled adjusts the flags that follow from the change of a row's state from before to state.
func (c *Cache) settled(before, state uint32) uint32 {
	if state&^before&uint32(Dirty) != 0 {
		state = c.notOld(state)
	}
	if state&before&uint32(Dirty) == 0 {
		state &^= uint32(Saved)
	}
	return state
}

func (c *Cache) visit(ref uint32, m *meta, fn func(Entry) Change) {
	ch := fn(Entry{
		Ref: ref, Key: m.key, Flags: c.flags(m.state), Pins: int(pins(m.state)),
		Uses: int(decodeUses(uses(m.state))), Needed: c.mu.win.ahead(group(m.state)) >= 0, Row: c.row(ref),
	})
	c.change(m, c.changed(m.state, ch))
}

// ForEachOfSlot calls fn for every cached row whose hash h has h & mask == slot; mask is 2^n - 1.
// It walks the few chains that can hold such rows, under the mutex: fn must be quick and must not
// call the cache.
func (c *Cache) ForEachOfSlot(slot, mask uint64, fn func(Entry) Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.mu.dir
	step := mask + 1
	if step > uint64(d.mask>>1)+1 {
		// The directory is coarser than the slots: all rows of the slot are in one chain.
		c.visitChain(d.chain(slot), slot, mask, fn)
		return
	}
	for i := slot; i < uint64(d.n); i += step {
		c.visitChain(uint32(i), slot, mask, fn)
	}
}

func (c *Cache) visitChain(chain uint32, slot, mask uint64, fn func(Entry) Change) {
	for ref := *c.mu.dir.head(chain); ref != 0; {
		m := c.meta(ref)
		next := m.next
		if c.hash(m.key)&mask == slot {
			c.visit(ref, m, fn)
		}
		ref = next
	}
}

// Change changes the flags of refs. It skips references that are 0.
func (c *Cache) Change(refs []uint32, ch Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		if ref == 0 {
			continue
		}
		m := c.meta(ref)
		c.change(m, c.changed(m.state, ch))
	}
}

// Row returns the words of ref, which the caller has pinned. Working sets find the words themselves
// through Slabs.
func (c *Cache) Row(ref uint32) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.row(ref)
}

// LeavingOfSlot is the number of dirty rows of a slot (see ForEachOfSlot) that no pass in flight
// and no announced pass needs.
func (c *Cache) LeavingOfSlot(slot, mask uint64) (rows int) {
	c.ForEachOfSlot(slot, mask, func(e Entry) Change {
		if e.Flags&Dirty != 0 && e.Pins == 0 && !e.Needed {
			rows++
		}
		return Change{}
	})
	return rows
}
