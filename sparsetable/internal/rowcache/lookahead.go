package rowcache

import "fmt"

const (
	// If passes have more than growNum / growDen times the keys that the window was made for, the
	// window is made again. Up to that factor the tables have enough room.
	growNum, growDen = 5, 4
	// At a load of tableFullNum / tableFullDen the table counts as full: one key in eleven then has
	// no room in its line.
	tableFullNum, tableFullDen = 7, 8
	// For each row that is read before its pass, the cache holds earlyNum / earlyDen rows. A half
	// is for the row itself, because it arrives at any time between announcement and pass. Somewhat
	// less than one is for rows that are dirty and needed by no announced pass, and wait until
	// their bucket is read; there are at least as many of them.
	earlyNum, earlyDen = 7, 5
)

// Lookahead returns how many passes of passKeys keys, beyond the pass that is pulled next, Announce
// notes at present. The caller should announce passes that far ahead and no farther. It returns 0
// if the policy does not look ahead, or if its window cannot hold even one such pass. The first
// call makes the window.
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
	if w.yielded {
		return 0, nil
	}
	passes, _ = w.plan(passKeys, c.fitRowsLocked())
	if w.passes > 0 {
		passes = min(passes, c.reachLocked())
	}
	return passes, nil
}

// reachLocked is how many passes beyond the next are noted at present: as many as the window was
// made for, but fewer if the rows that these passes want in memory at one time do not fit. Such
// rows are
//
//   - the rows that two or more of the announced passes need, from the first of
//     these passes to the last;
//   - with Options.NoteMissing, the rows that are read before their pass comes, those
//     that have to leave for them, and those of the passes that are being trained.
//
// All other rows are needed by one pass only and are already cached, or are read with their pass;
// they leave when other rows need their room more. The number is also lower if passes have more
// keys in common than the window's table can hold.
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
	rows := c.fitRowsLocked()
	if len(w.missing) > 0 {
		rows = max(0, rows-earlyPasses*int64(w.sized))
	}
	limit(w.wantedRows(), rows)
	limit(w.again, int64(len(w.table))/tableFullDen*tableFullNum)
	return int(reach)
}

// wantedRows estimates how many rows the announced passes want in memory at one time.
func (w *window) wantedRows() int64 {
	early := int64(0)
	for a := 1; a <= maxAhead && w.current+int64(a) <= w.newest; a++ {
		early += int64(w.early[w.groupAhead(a)])
	}
	return w.again + early/earlyDen*earlyNum
}

// fitRowsLocked is how many rows the budget holds besides the window.
func (c *Cache) fitRowsLocked() int64 {
	row := c.slabBytes>>c.shift + segmentBytes/headsPerSegment
	return (c.budget() - c.fixed - c.mu.win.bytes()) / row
}

// outgrown reports whether passes of that many keys need a larger window.
func (w *window) outgrown(keys int) bool {
	return keys > minPassKeys && int64(keys)*growDen > int64(w.sized)*growNum
}

// fitWindowLocked reports whether there is a window. It makes one for the first pass, and a larger
// one when passes have markedly more keys. If rows already take the budget, Shrink makes room for
// the new window; until then the old window stays, if there is one. REQUIRES: announcing is held.
func (c *Cache) fitWindowLocked(passKeys int) (open bool, err error) {
	w := &c.mu.win
	if w.yielded {
		return false, nil
	}
	if w.passes > 0 && !w.outgrown(passKeys) {
		return true, nil
	}
	w.choose(passKeys, c.fitRowsLocked())
	passes, b := w.plan(passKeys, c.fitRowsLocked())
	more := b.total() - w.bytes()
	switch {
	case passes == 0 && w.passes == 0:
		return false, nil
	case passes == 0:
		return false, c.closeWindowLocked()
	case w.passes > 0 && more*growDen <= w.bytes()*(growNum-growDen) && (b.missing > 0) == (len(w.missing) > 0):
		// The window already has about its maximum size, so it stays and holds fewer of these
		// larger passes.
		held := int64(len(w.table)) * 8 / int64(tableBytesPerKey*float64(passKeys))
		w.passes, w.sized, w.waiting = int(max(1, min(int64(passes), held-1))), passKeys, 0
		return true, nil
	}
	w.waiting = 0
	if c.mu.bytes+more > c.mu.maxBytes {
		w.waiting = more
		return w.passes > 0, nil
	}
	// The contents of the old window are lost. That costs little: the state of each cached row
	// names the next pass that needs it, and later passes will be announced soon.
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

// YieldWindow frees the window because its memory is needed for pinned rows or for the lists of a
// Pull, and reports whether there was one. Passes that are announced after RestoreWindow get a new
// one.
func (c *Cache) YieldWindow() (freed bool, err error) {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	freed = w.bytes()+w.waiting > 0
	w.yielded, w.waiting = true, 0
	return freed, c.closeWindowLocked()
}

// RestoreWindow allows a window again after YieldWindow.
func (c *Cache) RestoreWindow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.win.yielded = false
}

// LimitWindow bounds the size of the window in bytes. It frees a larger window; the passes that are
// announced next get a smaller one.
func (c *Cache) LimitWindow(bytes int64) error {
	if !c.rules.window {
		return nil
	}
	c.announcing.Lock()
	defer c.announcing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	w.limit = bytes
	w.waiting = min(w.waiting, max(0, bytes))
	if w.bytes() <= bytes {
		return nil
	}
	return c.closeWindowLocked()
}

// closeWindowLocked frees the window. Cached rows keep the next pass that was
// announced for them.
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

// Forget withdraws the announced passes that were not pulled, so that no row stays in the cache
// because of them. After that, Next returns the number from which passes may be announced.
func (c *Cache) Forget() {
	c.announcing.Lock()
	defer c.announcing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if last := max(w.newest, w.current); last >= 0 {
		// All announced groups are now in the past, also those in the states of rows.
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

// Expect notes that the announced pass passes[i] needs the row refs[i], so that the row stays until
// then. The rows must be pinned. Expect skips references that are 0 and passes that are -1, which
// stands for no pass. It is for rows that are read before their pass: without Options.NoteMissing
// the window does not note uncached keys that only one pass needs.
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
			m.state = withGroup(m.state, w.earlier(number(g), group(m.state)))
		}
	}
}

// Next is the number of the first pass that may be announced. Passes before it are
// in the group of a pass that is being pulled, or in an earlier group.
func (c *Cache) Next() (pass int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.mu.win.current + 1) * c.mu.win.perGrp
}

// beginAnnounce prepares for the keys of a pass and returns its group, or -1 if the pass cannot be
// noted. REQUIRES: announcing is held.
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
