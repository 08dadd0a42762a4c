package rowcache

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

// window knows which announced passes need which keys. Passes are counted in
// groups, of one pass unless Options.LookaheadPasses is above 50.
//
// The next group that needs a cached row stands in the row's own state. Beyond
// that, only keys that two or more announced passes need matter, a ninth of
// what is announced on the trace of bench/policies; they are in table:
//
//	line    8 entries, 64 bytes, chosen by the upper half of the hash
//	entry   tag (12 bits of the hash) << 52 | set of groups
//	set     bit g mod 52: group g needs the key; 0: the entry is empty
//
// Which keys have been announced once is told by doors, Bloom filters of which
// each takes the keys first announced in a third of the window:
//
//	line    4 words, 32 bytes, chosen by the upper half of the hash
//	word    of filter (g / span) mod 4: 4 bits a key
//
// Tags collide and filters say yes by mistake: then a row stays longer than it
// had to, and that is all.
type window struct {
	limit   int64 // bytes it may take
	waiting int64 // bytes it waits for, because rows have the budget
	wanted  int   // Options.LookaheadPasses
	passes  int   // how far it looks at present; 0 until the first Announce
	perGrp  int64 // passes in a group
	current int64 // group of the pass last pulled; -1: none
	newest  int64 // group last announced
	lost    int64 // keys of the present pass whose line was full

	table []uint64
	doors []uint64
	span  int64            // groups whose keys one filter takes
	epoch [doorCount]int64 // what each filter is for: groups epoch*span and on
}

const (
	setBits = 52
	setMask = 1<<setBits - 1
	// maxAhead is the reach in groups, counted from the one pulled last, whose
	// bit of the set stays free: the group to be pulled next and maxLook more.
	maxAhead = setBits - 1
	maxLook  = maxAhead - 1

	lineEntries = 8
	doorCount   = 4
	doorProbes  = 4

	// groupRing is the modulus of the 8 bits for a group in a row's state.
	groupRing = 255

	// Bytes for each key of each pass in the window, measured on the trace of
	// bench/policies: 0.14 entries, wrong ones of the filters included, at a
	// load of 0.75; and 12 bits in the filters for each of 0.16 x 4 new keys.
	tableBytesPerKey = 1.5
	doorBytesPerKey  = 1.0

	// windowShare of the budget goes to the window at most.
	windowShare = 8
)

func (w *window) init(passes int, limit int64) {
	*w = window{wanted: passes, limit: limit, current: -1, newest: -1, perGrp: 1}
	if passes > maxLook {
		w.perGrp = int64(passes+maxLook-1) / maxLook
	}
}

// bytes is what the window takes.
func (w *window) bytes() int64 { return int64(len(w.table)+len(w.doors)) * 8 }

// plan is how many passes of that many keys the window can hold, and what it
// takes for them.
func (w *window) plan(keys int) (passes int, tableBytes, doorBytes int64) {
	perPass := float64(max(keys, 512))
	fit := float64(w.limit-2*pageBytes) / (tableBytesPerKey + doorBytesPerKey)
	passes = w.wanted
	if passes == 0 {
		passes = maxLook
	}
	// Beyond the passes to look at there is the one about to be pulled.
	passes = min(passes, int(fit/perPass)-1)
	if passes < 1 {
		return 0, 0, 0
	}
	keysAll := perPass * float64(passes+1)
	return passes, roundUp(int64(keysAll*tableBytesPerKey), pageBytes), roundUp(int64(keysAll*doorBytesPerKey), pageBytes)
}

// open makes the window as planned.
func (w *window) open(passes int, tableBytes, doorBytes int64) error {
	table, err := offheap.Map(int(tableBytes))
	if err != nil {
		return err
	}
	doors, err := offheap.Map(int(doorBytes))
	if err != nil {
		return errors.Join(err, offheap.Unmap(bytesOf(offheap.Uint64s(table))))
	}
	w.passes = passes
	w.table, w.doors = offheap.Uint64s(table), offheap.Uint64s(doors)
	// Filters for the reach of passes/perGrp + 1 groups lie in doorCount - 1
	// spans and the part of one more.
	w.span = (int64(passes)/w.perGrp + doorCount - 1) / (doorCount - 1)
	for i := range w.epoch {
		w.epoch[i] = -1
	}
	return nil
}

func (w *window) close() error {
	var errs []error
	for _, s := range [][]uint64{w.table, w.doors} {
		if s != nil {
			errs = append(errs, offheap.Unmap(bytesOf(s)))
		}
	}
	w.table, w.doors = nil, nil
	return errors.Join(errs...)
}

// number is group g as a row's state holds it, 1 to 255.
func number(g int64) uint32 { return 1 + uint32(g%groupRing) }

// groupAhead is the number of the group that comes a groups after the current.
func (w *window) groupAhead(a int) uint32 { return number(w.current + groupRing + int64(a)) }

// ahead is how many groups after the current one the group numbered n comes,
// past where it came already or n is 0, no group.
func (w *window) ahead(n uint32) int {
	a := (int64(n) - 1 - w.current%groupRing + 2*groupRing) % groupRing
	if n == 0 || a > maxAhead {
		return past
	}
	return int(a)
}

const past = -1

// line returns the entries where a key of that hash may be, and its tag.
func (w *window) line(hash uint64) (entries []uint64, tag uint64) {
	lines := uint64(len(w.table) / lineEntries)
	at, _ := bits.Mul64(hash, lines)
	return w.table[at*lineEntries:][:lineEntries:lineEntries], hash >> 8 << setBits
}

// next is the number of the first group after the current one that needs a key
// of that hash, 0 where none does or it is not known.
func (w *window) next(hash uint64) uint32 {
	if len(w.table) == 0 || w.newest <= w.current {
		return 0
	}
	entries, tag := w.line(hash)
	for _, e := range entries {
		if e&setMask == 0 || e&^setMask != tag {
			continue
		}
		// Turn the set so that bit 0 is the group after the current one.
		turn := uint((w.current + 1) % setBits)
		set := (e&setMask)>>turn | e<<(setBits-turn)&setMask
		return w.groupAhead(1 + bits.TrailingZeros64(set))
	}
	return 0
}

// note adds group g to what is known of a key.
func (w *window) note(hash uint64, g int64, again bool) {
	entries, tag := w.line(hash)
	bit := uint64(1) << (g % setBits)
	empty := -1
	for i, e := range entries {
		switch {
		case e&setMask == 0:
			empty = i
		case e&^setMask == tag:
			entries[i] |= bit
			return
		}
	}
	if !again && !w.knock(hash, g) {
		return
	}
	if empty < 0 {
		w.lost++
		return
	}
	entries[empty] = tag | bit
}

// knock reports whether the key was announced before, and notes that it is
// now.
func (w *window) knock(hash uint64, g int64) bool {
	lines := uint64(len(w.doors) / doorCount)
	at, rest := bits.Mul64(hash, lines)
	line := w.doors[at*doorCount:][:doorCount:doorCount]
	rest *= 0x9e3779b97f4a7c15 // the product's low half repeats hash's low bits
	probe := uint64(0)
	for i := range doorProbes {
		probe |= 1 << (rest >> (64 - 6*(i+1)) & 63)
	}
	oldest := (w.current + 1) / w.span
	for i, word := range line {
		if w.epoch[i] >= oldest && word&probe == probe {
			return true
		}
	}
	line[(g/w.span)%doorCount] |= probe
	return false
}

// begin prepares for the keys of group g.
func (w *window) begin(g int64) {
	w.newest = max(w.newest, g)
	e := g / w.span
	if at := e % doorCount; w.epoch[at] != e {
		w.epoch[at] = e
		for i := int(at); i < len(w.doors); i += doorCount {
			w.doors[i] = 0
		}
	}
}

// advance makes g the current group, and forgets it and those before it.
func (w *window) advance(g int64) {
	if len(w.table) > 0 && w.newest > w.current {
		gone := uint64(0)
		for i := w.current + 1; i <= min(g, w.current+setBits); i++ {
			gone |= 1 << (i % setBits)
		}
		for i := range w.table {
			w.table[i] &^= gone
		}
	}
	w.current = g
}

// Lookahead sizes the window for passes of that many keys and returns how many
// passes beyond the one to be pulled next Announce takes note of: whoever
// announces should be so far ahead and no farther. Only the first call decides,
// and the first Announce is one. 0: the policy does not look ahead.
func (c *Cache) Lookahead(passKeys int) (passes int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rules.window {
		return 0, nil
	}
	if _, err := c.openWindowLocked(passKeys); err != nil {
		return 0, err
	}
	if c.mu.win.passes == 0 {
		passes, _, _ = c.mu.win.plan(passKeys)
		return passes, nil
	}
	return c.mu.win.passes, nil
}

// openWindowLocked reports whether there is a window. Where rows have taken the
// budget before the first pass was announced, Shrink makes room for it.
func (c *Cache) openWindowLocked(passKeys int) (open bool, err error) {
	w := &c.mu.win
	if !c.rules.window || w.passes > 0 {
		return w.passes > 0, nil
	}
	passes, table, doors := w.plan(passKeys)
	if passes == 0 {
		return false, nil
	}
	w.waiting = 0
	if c.mu.bytes+table+doors > c.mu.maxBytes {
		w.waiting = table + doors
		return false, nil
	}
	if err := w.open(passes, table, doors); err != nil {
		return false, fmt.Errorf("rowcache: make room for announced passes: %w", err)
	}
	c.mu.bytes += w.bytes()
	return true, nil
}

// Announce tells the Lookahead policy that pass will need keys. Passes are
// announced in ascending order, before they are pulled. It reports whether it
// took note: not where the policy does not look ahead, or the pass lies beyond
// the window, or is not ahead at all.
func (c *Cache) Announce(pass int64, keys, hashes []uint64) (noted bool, err error) {
	if !c.rules.window || pass < 0 || len(keys) == 0 {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if open, err := c.openWindowLocked(len(keys)); !open {
		c.mu.stats.NotAnnounced += int64(len(keys))
		return false, err
	}
	if w.newest < 0 && w.current < 0 { // passes need not begin at 0
		w.current = pass/w.perGrp - 1
	}
	g := pass / w.perGrp
	if g <= w.current || pass > (w.current+1)*w.perGrp+int64(w.passes) {
		c.mu.stats.NotAnnounced += int64(len(keys))
		return false, nil
	}
	w.begin(g)
	for n := 0; len(keys) > 0; keys, hashes = keys[n:], hashes[n:] {
		n = min(len(keys), lockKeys)
		c.announceLocked(g, keys[:n], hashes[:n])
		c.mu.Unlock()
		c.mu.Lock()
		if g <= w.current {
			return true, nil // it is being pulled by now
		}
	}
	c.mu.stats.NotAnnounced += w.lost
	w.lost = 0
	return true, nil
}

func (c *Cache) announceLocked(g int64, keys, hashes []uint64) {
	c.mu.stats.Announced += int64(len(keys))
	w := &c.mu.win
	var refs [ahead]uint32
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.locate(keys[:n], hashes[:n], refs[:n])
		for i, ref := range refs[:n] {
			if ref == 0 {
				w.note(hashes[i], g, false)
				continue
			}
			m := c.meta(ref)
			if at := group(m.state); w.ahead(at) != past {
				if at != number(g) {
					w.note(hashes[i], g, true)
				}
				continue
			}
			if idle(m.state) {
				c.mu.ranks.remove(m.state)
				c.mu.ranks.add(withGroup(m.state, number(g)))
			}
			m.state = withGroup(m.state, number(g))
		}
		keys, hashes = keys[n:], hashes[n:]
	}
}

// reach makes pass the one being pulled.
func (c *Cache) reach(pass int64) {
	if !c.rules.window || pass < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := pass / c.mu.win.perGrp; g > c.mu.win.current {
		c.mu.win.advance(g)
	}
}

func bytesOf(s []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}
