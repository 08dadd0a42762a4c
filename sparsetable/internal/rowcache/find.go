package rowcache

import "errors"

const (
	// lockKeys is how many keys are looked up under one hold of the mutex. That
	// takes about 50 microseconds, for which others may have to wait.
	lockKeys = 1024
	// ahead is how many chains are followed side by side: their misses of the
	// processor's cache overlap instead of adding up. 32 is more than the
	// misses that a core has in flight; the lines fit the first-level cache.
	ahead = 32
)

// Find sets refs[i] to the reference of the row of keys[i], or to 0 where the key is
// not cached, and pins the rows that it finds, for pass. hashes has the hashes of
// keys; both and refs have the same length. It returns the number of rows found.
// Passes are pulled in ascending order, and Find removes pass and those before it
// from the announced passes. pass is negative if the rows are not pulled for a pass
// of that order.
func (c *Cache) Find(pass int64, keys, hashes []uint64, refs []uint32) (found int) {
	c.reach(pass)
	for len(keys) > 0 {
		n := min(len(keys), lockKeys)
		c.mu.Lock()
		f := c.findLocked(keys[:n], hashes[:n], refs[:n])
		c.mu.stats.Lookups += int64(n)
		c.mu.Unlock()
		found += f
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
	}
	return found
}

func (c *Cache) findLocked(keys, hashes []uint64, refs []uint32) (found int) {
	shared := int64(0)
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		keysN, hashesN, refsN := keys[:n], hashes[:n:n], refs[:n:n]
		c.locate(keysN, hashesN, refsN)
		for i, ref := range refsN {
			if ref == 0 {
				continue
			}
			found++
			if c.pin(ref, c.meta(ref), hashesN[i]) {
				shared++
			}
		}
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
	}
	c.mu.stats.HitsInFlight += shared
	c.mu.stats.HitsIdle += int64(found) - shared
	c.mu.pinsLeft -= int64(found)
	if c.mu.pinsLeft <= 0 {
		c.startEpoch()
	}
	return found
}

// Locate sets refs[i] to the reference of keys[i], or to 0 where the key is not
// cached. It pins nothing, so an idle row may leave at any time.
func (c *Cache) Locate(keys, hashes []uint64, refs []uint32) {
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.mu.Lock()
		c.locate(keys[:n], hashes[:n], refs[:n])
		c.mu.Unlock()
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
	}
}

// locate sets refs to the references of at most ahead keys. Its first loops
// have no branch that depends on what they load, so that the processor runs
// ahead and starts the loads of many keys before the first has arrived.
func (c *Cache) locate(keys, hashes []uint64, refs []uint32) {
	var heads [ahead]*uint32
	d := &c.mu.dir
	for i, h := range hashes {
		heads[i&(ahead-1)] = d.head(d.chain(h))
	}
	for i := range refs {
		refs[i] = *heads[i&(ahead-1)]
	}
	var states uint32
	for _, ref := range refs {
		states |= c.meta(ref).state // reference 0 has one as well
	}
	c.mu.touched = states
	for i, key := range keys {
		ref := refs[i]
		for ref != 0 {
			m := c.meta(ref)
			if m.key == key {
				break
			}
			ref = m.next
		}
		refs[i] = ref
	}
}

// pin adds a pin and reports whether there was one before.
func (c *Cache) pin(ref uint32, m *meta, hash uint64) bool {
	s := m.state
	shared := pins(s) != 0
	if idle(s) {
		c.mu.ranks.remove(s)
	}
	c.mu.random += 0x9e3779b97f4a7c15 // Weyl sequence (Steele et al. 2014)
	r := c.mu.random
	r = (r ^ r>>32) * 0xd6e8feb86659fd93
	s = withUses(s, countUse(uses(s), r>>32))
	if pins(s) < maxPins {
		s++
	} else {
		c.pinMore(ref)
	}
	// If the state names a pass that is still to come, that stays the next one.
	if c.rules.window && c.mu.win.ahead(group(s)) <= 0 {
		s = withGroup(s, c.mu.win.next(hash))
	}
	m.state = withEpoch(s, c.mu.epoch)
	return shared
}

// Insert adds keys[i] wherever refs[i] is 0; none of those keys may be cached. It
// pins the new rows, fills them with zeros, and sets refs[i]. used[i] is how often
// the row was used in its life, as far as the caller knows; a nil slice means never.
// The rows have Mark2 from the beginning if mark2 says so. It returns how many rows it
// added. If these are not all, the budget is reached, and the rest of refs is as it was
// before. It fails only if memory cannot be mapped.
func (c *Cache) Insert(keys, hashes []uint64, used []uint32, refs []uint32, mark2 bool) (added int, err error) {
	if !c.rules.history {
		used = nil
	}
	return c.insert(keys, hashes, used, refs, mark2)
}

func (c *Cache) insert(keys, hashes []uint64, used []uint32, refs []uint32, mark2 bool) (added int, err error) {
	for len(keys) > 0 {
		n := min(len(keys), lockKeys)
		c.mu.Lock()
		a, err := c.insertLocked(keys[:n], hashes[:n], used[:min(n, len(used))], refs[:n], mark2)
		c.mu.Unlock()
		added += a
		if errors.Is(err, errFull) {
			return added, nil
		}
		if err != nil {
			return added, err
		}
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
		used = used[min(n, len(used)):]
	}
	return added, nil
}

func (c *Cache) insertLocked(keys, hashes []uint64, used []uint32, refs []uint32, mark2 bool) (added int, err error) {
	first := uint32(Live)
	if mark2 {
		first |= uint32(Mark2)
	}
	for i, ref := range refs {
		if i%ahead == 0 {
			c.mu.touched = c.mu.win.missing.touch(hashes[i:min(i+ahead, len(hashes))])
		}
		if ref != 0 {
			continue
		}
		if ref, err = c.take(); err != nil {
			break
		}
		m := c.meta(ref)
		m.key = keys[i]
		s := first | c.mu.parity + 1
		u := uint32(0)
		if used != nil {
			u = encodeUses(used[i])
		}
		s = withUses(s, min(maxUses, u+1))
		if c.rules.window {
			w := &c.mu.win
			s = withGroup(s, w.sooner(w.arrive(hashes[i]), w.next(hashes[i])))
		}
		m.state = withEpoch(s, c.mu.epoch)
		c.link(ref, m, hashes[i])
		clear(c.row(ref))
		refs[i] = ref
		added++
	}
	c.mu.stats.Inserts += int64(added)
	if mark2 {
		c.mu.marked2 += int64(added)
	}
	c.mu.pinsLeft -= int64(added)
	return added, err
}

// Release takes back one pin of every reference but 0. dirty says that the
// rows may have been updated: they are Dirty then, and no longer Saved.
func (c *Cache) Release(refs []uint32, dirty bool) {
	set, unset := uint32(0), uint32(0)
	if dirty {
		set, unset = uint32(Dirty), uint32(Saved)
	}
	for len(refs) > 0 {
		n := min(len(refs), lockKeys)
		c.mu.Lock()
		c.releaseLocked(refs[:n], set, unset)
		c.mu.Unlock()
		refs = refs[n:]
	}
}

func (c *Cache) releaseLocked(refs []uint32, set, unset uint32) {
	for len(refs) > 0 {
		n := min(len(refs), ahead)
		var states uint32
		for _, ref := range refs[:n] {
			states |= c.meta(ref).state
		}
		c.mu.touched = states
		for _, ref := range refs[:n] {
			if ref == 0 {
				continue
			}
			m := c.meta(ref)
			if pins(m.state) == 0 {
				panic("rowcache: release of a row that is not pinned")
			}
			if pins(m.state) == maxPins && c.unpinMore(ref) {
				c.change(m, m.state&^unset|set)
				continue
			}
			c.change(m, (m.state-1)&^unset|set)
			if idle(m.state) {
				c.mu.ranks.add(m.state)
			}
		}
		refs = refs[n:]
	}
}
