package rowcache

import (
	"errors"
	"sync/atomic"
)

const (
	// lockKeys is how many keys one thread looks up per acquisition of the mutex (several threads:
	// see holdKeys). That takes about 50 microseconds, during which others may wait.
	lockKeys = 1024
	// ahead is how many chains are followed side by side, so that their misses of the processor's
	// cache overlap instead of adding up. 32 is more than the misses that a core has in flight, and
	// the lines still fit the first-level cache.
	ahead = 32
)

// Find sets refs[i] to the reference of the row of keys[i], or to 0 if the key is not cached, and
// pins the rows that it finds, for pass. hashes has the hashes of keys; all three slices have the
// same length. It returns the number of rows found. Passes are pulled in ascending order, and Find
// removes pass and those before it from the announced passes. pass is negative if the rows are not
// pulled for such a pass.
func (c *Cache) Find(pass int64, keys, hashes []uint64, refs []uint32) (found int) {
	c.reach(pass)
	c.mu.Lock()
	c.mu.random += 0x9e3779b97f4a7c15 // Weyl sequence (Steele et al. 2014)
	c.mu.Unlock()
	for len(keys) > 0 {
		n := holdKeys(len(keys))
		c.mu.Lock()
		f := c.findLocked(keys[:n], hashes[:n], refs[:n])
		c.mu.Unlock()
		found += f
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
	}
	return found
}

func (c *Cache) findLocked(keys, hashes []uint64, refs []uint32) int {
	before := c.mu.hitsInFlight + c.mu.hitsIdle
	c.share(work{do: (*Cache).findPart, keys: keys, hashes: hashes, refs: refs})
	found := c.mu.hitsInFlight + c.mu.hitsIdle - before
	c.mu.pinsLeft -= found
	if c.mu.pinsLeft <= 0 {
		c.startEpoch()
	}
	return int(found)
}

func (c *Cache) findPart(w *work, t *tally, lo, hi int) {
	for lo < hi {
		n := min(hi-lo, ahead)
		hashes, refs := w.hashes[lo:lo+n:lo+n], w.refs[lo:lo+n:lo+n]
		t.touched |= c.locate(w.keys[lo:lo+n], hashes, refs)
		for i, ref := range refs {
			if ref != 0 {
				c.pin(t, ref, hashes[i])
			}
		}
		lo += n
	}
}

// Locate sets refs[i] to the reference of keys[i], or to 0 if the key is not cached. It pins
// nothing, so an idle row may leave at any time.
func (c *Cache) Locate(keys, hashes []uint64, refs []uint32) {
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.mu.Lock()
		c.mu.touched = c.locate(keys[:n], hashes[:n], refs[:n])
		c.mu.Unlock()
		keys, hashes, refs = keys[n:], hashes[n:], refs[n:]
	}
}

// locate sets refs to the references of at most ahead keys. Its first loops have no branch that
// depends on what they load, so that the processor runs ahead and starts the loads of many keys
// before the first has arrived. It returns a value made from these loads only so that the compiler
// keeps them; callers ignore it.
func (c *Cache) locate(keys, hashes []uint64, refs []uint32) (touched uint32) {
	var heads [ahead]*uint32
	d := &c.mu.dir
	for i, h := range hashes {
		heads[i&(ahead-1)] = d.head(d.chain(h))
	}
	for i := range refs {
		refs[i] = *heads[i&(ahead-1)]
	}
	for _, ref := range refs {
		touched |= c.meta(ref).next // reference 0 has a meta, too
	}
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
	return touched
}

// pin adds a pin. Whether it counts as a use of an often used row is decided by hash, so that the
// order in which threads pin rows makes no difference.
func (c *Cache) pin(t *tally, ref uint32, hash uint64) {
	m := c.meta(ref)
	r := c.mu.random + hash
	r = (r ^ r>>32) * 0xd6e8feb86659fd93
	for {
		before := atomic.LoadUint32(&m.state)
		s := withEpoch(withUses(before, countUse(uses(before), r>>32)), c.mu.epoch)
		if pins(s) < maxPins {
			s++
		}
		// If the state already names a pass that is still to come, that pass remains the next one.
		if c.rules.window && c.mu.win.ahead(group(s)) <= 0 {
			s = withGroup(s, c.mu.win.next(hash))
		}
		if !t.swap(m, before, s) {
			continue
		}
		if pins(before) == maxPins {
			c.pinMore(ref)
		}
		if idle(before) {
			t.ranks.remove(before)
		}
		if pins(before) != 0 {
			t.hitsInFlight++
		} else {
			t.hitsIdle++
		}
		return
	}
}

// Insert adds keys[i] wherever refs[i] is 0; none of those keys may be cached. It pins the new
// rows, fills them with zeros, and sets refs[i]. used[i] is how often the row was used in its life,
// as far as the caller knows; a nil slice means never. With mark2, the new rows have Mark2. Insert
// returns how many rows it added. If these are not all, the budget is reached, and the rest of refs
// is unchanged. It fails only if memory cannot be mapped.
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
			s = withGroup(s, w.earlier(w.arrive(hashes[i]), w.next(hashes[i])))
		}
		m.state = withEpoch(s, c.mu.epoch)
		c.link(ref, m, hashes[i])
		clear(c.row(ref))
		refs[i] = ref
		added++
	}
	if mark2 {
		c.mu.marked2 += int64(added)
	}
	c.mu.pinsLeft -= int64(added)
	return added, err
}

// Release removes one pin of every reference but 0. dirty says that the rows may have been updated:
// they become Dirty and are no longer Saved.
func (c *Cache) Release(refs []uint32, dirty bool) {
	set, unset := uint32(0), uint32(0)
	if dirty {
		set, unset = uint32(Dirty), uint32(Saved)
	}
	for len(refs) > 0 {
		n := holdKeys(len(refs))
		c.mu.Lock()
		c.share(work{do: (*Cache).releasePart, refs: refs[:n], set: set, unset: unset})
		c.mu.Unlock()
		refs = refs[n:]
	}
}

func (c *Cache) releasePart(w *work, t *tally, lo, hi int) {
	for lo < hi {
		n := min(hi-lo, ahead)
		for _, ref := range w.refs[lo : lo+n] {
			t.touched |= c.meta(ref).next
		}
		for _, ref := range w.refs[lo : lo+n] {
			if ref != 0 {
				c.unpin(t, ref, w.set, w.unset)
			}
		}
		lo += n
	}
}

// unpin removes a pin, and sets and clears flags.
func (c *Cache) unpin(t *tally, ref uint32, set, unset uint32) {
	m := c.meta(ref)
	one := uint32(1) // 0: the pin was counted in morePins, not in the state
	for {
		before := atomic.LoadUint32(&m.state)
		if one == 1 && pins(before) == 0 {
			panic("rowcache: release of a row that is not pinned")
		}
		if one == 1 && pins(before) == maxPins && c.unpinMore(ref) {
			one = 0
		}
		s := (before-one)&^unset | set
		changed := (before^s)&flagMask != 0
		if changed {
			s = c.settled(before, s)
		}
		if !t.swap(m, before, s) {
			continue
		}
		if changed {
			c.count(t, before, s)
		} else if idle(s) {
			t.ranks.add(s)
		}
		return
	}
}
