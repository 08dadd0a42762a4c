package rowcache

import "fmt"

const (
	// The window is made anew for passes that have more keys than those that it
	// was made for, by this factor: up to it, the tables' lines take them.
	growNum, growDen = 5, 4
	// tableFullNum / tableFullDen is the load from which on the table is full: one
	// key in eleven has no room in its line by then.
	tableFullNum, tableFullDen = 7, 8
	// earlyShare is the part of the keys that announced passes lack whose rows are
	// in memory at a time, having come before their pass: one in so many. They come
	// at any time between the announcement and the pass.
	earlyShare = 2
)

// Lookahead is how many passes of that many keys, beyond the one to be pulled
// next, Announce takes note of at present: whoever announces should be so far
// ahead and no farther. 0: the policy does not look ahead, or its window does not
// hold even one such pass. The first call makes the window.
func (c *Cache) Lookahead(passKeys int) (passes int, err error) {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if !c.rules.window {
		return 0, nil
	}
	if w.passes == 0 {
		if _, err := c.fitWindowLocked(passKeys); err != nil {
			return 0, err
		}
	}
	if w.passes > 0 && !w.outgrown(passKeys) {
		return c.reachLocked(), nil
	}
	passes, _ = w.plan(passKeys)
	if w.passes > 0 {
		passes = min(passes, c.reachLocked())
	}
	return passes, nil
}

// reachLocked is how many passes beyond the next are noted at present: as many as
// the window was made for, and fewer where the rows that they want in memory at
// one time do not fit. Those are
//
//   - rows that two or more of the announced passes need, from the first to the
//     last of them;
//   - with Options.NoteMissing, rows that are read before their pass comes: some
//     of the keys that are not cached.
//
// Others are needed once and are there already, or come with their pass; they
// leave when something else needs their room more. It reaches less far, too, where
// passes have more keys in common than the window's table has room for.
func (c *Cache) reachLocked() int {
	w := &c.mu.win
	groups := w.newest - w.current
	if w.passes <= 1 || groups <= 1 {
		return w.passes
	}
	reach := int64(w.passes)
	limit := func(want, fit int64) {
		if want > fit {
			reach = max(1, min(reach, groups*w.perGrp*fit/want-1))
		}
	}
	limit(w.wantedRows(), c.fitRowsLocked())
	limit(w.again, int64(len(w.table))/tableFullDen*tableFullNum)
	return int(reach)
}

// wantedRows is about how many rows the announced passes want in memory at one
// time.
func (w *window) wantedRows() int64 {
	early := int64(0)
	for a := 1; a <= maxAhead && w.current+int64(a) <= w.newest; a++ {
		early += int64(w.early[w.groupAhead(a)])
	}
	return w.again + early/earlyShare
}

// fitRowsLocked is how many rows the budget holds beside the window.
func (c *Cache) fitRowsLocked() int64 {
	row := c.slabBytes>>c.shift + segmentBytes/headsPerSegment
	return (c.budget() - c.fixed - c.mu.win.bytes()) / row
}

// outgrown reports whether passes of that many keys need another window.
func (w *window) outgrown(keys int) bool {
	return keys > minPassKeys && int64(keys)*growDen > int64(w.sized)*growNum
}

// fitWindowLocked reports whether there is a window. It makes it for the first
// pass, and anew for passes that have markedly more keys. Where rows have taken
// the budget before that, Shrink makes room for it; until then the one before, if
// there is one, stays. REQUIRES: announcing is held.
func (c *Cache) fitWindowLocked(passKeys int) (open bool, err error) {
	w := &c.mu.win
	if w.passes > 0 && !w.outgrown(passKeys) {
		return true, nil
	}
	w.choose(passKeys)
	passes, b := w.plan(passKeys)
	more := b.total() - w.bytes()
	switch {
	case passes == 0 && w.passes == 0:
		return false, nil
	case passes == 0:
		return false, c.closeWindowLocked()
	case w.passes > 0 && more*growDen <= w.bytes()*(growNum-growDen) && (b.missing > 0) == (len(w.missing) > 0):
		// It is as large as it may be, and holds fewer such passes.
		held := int64(len(w.table)) * 8 / int64(tableBytesPerKey*float64(passKeys))
		w.passes, w.sized, w.waiting = int(max(1, min(int64(passes), held-1))), passKeys, 0
		return true, nil
	}
	w.waiting = 0
	if c.mu.bytes+more > c.mu.maxBytes {
		w.waiting = more
		return w.passes > 0, nil
	}
	// What the one before knows is let go: cached rows know the next pass that
	// needs them, and later ones are announced before long.
	if err := c.closeWindowLocked(); err != nil {
		return false, err
	}
	if err := w.open(passes, b); err != nil {
		return false, fmt.Errorf("rowcache: make room for announced passes: %w", err)
	}
	w.sized = passKeys
	c.mu.bytes += w.bytes()
	return true, nil
}

// closeWindowLocked frees the window. Passes that were announced stay so.
func (c *Cache) closeWindowLocked() error {
	w := &c.mu.win
	c.mu.bytes -= w.bytes()
	w.passes, w.sized, w.again = 0, 0, 0
	clear(w.early[:])
	if err := w.close(); err != nil {
		return fmt.Errorf("rowcache: give back the window of announced passes: %w", err)
	}
	return nil
}

// Forget withdraws the announced passes that were not pulled: no row stays for
// them. Next says from which number on passes may be announced after that.
func (c *Cache) Forget() {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if last := max(w.newest, w.current); last >= 0 {
		// Past the last group: what rows know of it is out of date then.
		w.setCurrent(last + 1)
		w.again = 0
		clear(w.early[:])
		clear(w.table)
		clear(w.missing)
		for i := range w.epoch {
			w.epoch[i] = -1
		}
	}
}

// Expect notes that the announced pass passes[i] needs the row refs[i], so that it
// stays until then. The rows are pinned; those of reference 0 or of no pass, -1,
// are passed over. It is for rows that come before their pass: without
// Options.NoteMissing nobody else knows of keys that one pass alone needs.
func (c *Cache) Expect(refs []uint32, passes []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if !c.rules.window {
		return
	}
	for i, ref := range refs {
		if ref == 0 || passes[i] < 0 {
			continue
		}
		if g := passes[i] / w.perGrp; g > w.current && g <= w.current+maxAhead {
			m := c.meta(ref)
			m.state = withGroup(m.state, w.sooner(number(g), group(m.state)))
		}
	}
}

// Next is the number of the first pass that may be announced: others are in the
// group of one that is being pulled.
func (c *Cache) Next() (pass int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.mu.win.current + 1) * c.mu.win.perGrp
}

// beginAnnounce prepares for the keys of a pass and returns its group, -1 where
// it is not to be noted. REQUIRES: announcing is held.
func (c *Cache) beginAnnounce(pass int64, keys int) (g int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if open, err := c.fitWindowLocked(keys); !open {
		c.mu.stats.NotAnnounced += int64(keys)
		return -1, err
	}
	if w.newest < 0 && w.current < 0 { // passes need not begin at 0
		w.setCurrent(pass/w.perGrp - 1)
	}
	g = pass / w.perGrp
	if g <= w.current || pass > (w.current+1)*w.perGrp+int64(c.reachLocked()) {
		c.mu.stats.NotAnnounced += int64(keys)
		return -1, nil
	}
	w.begin(g)
	return g, nil
}
