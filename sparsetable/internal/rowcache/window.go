package rowcache

import (
	"errors"
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
	wanted  int   // Options.LookaheadPasses
	passes  int   // how far it looks at present; 0 until the first Announce
	perGrp  int64 // passes in a group
	current int64 // group of the pass last pulled; -1: none
	newest  int64 // group last announced
	lost    int64 // keys of the present pass that found their line full

	table []uint64
	doors []uint64
	span  int64            // groups whose keys one filter takes
	epoch [doorCount]int64 // what each filter is for: groups epoch*span and on
}

const (
	setBits = 52
	setMask = 1<<setBits - 1
	// maxAhead is the reach in groups: one bit of the set is the group that is
	// being pulled, one lies between the newest and it.
	maxAhead = 50

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

func (w *window) init(passes int, maxBytes int64) {
	*w = window{wanted: passes, limit: maxBytes / windowShare, current: -1, newest: -1, perGrp: 1}
	if passes > maxAhead {
		w.perGrp = int64(passes+maxAhead-1) / maxAhead
	}
}

// bytes is what the window takes; before the first Announce, what it may take.
func (w *window) bytes() int64 {
	if w.passes == 0 {
		return w.limit
	}
	return int64(len(w.table)+len(w.doors)) * 8
}

// open makes a window for passes of n keys.
func (w *window) open(n int) error {
	perPass := float64(max(n, 512)) * (tableBytesPerKey + doorBytesPerKey)
	fit := int(float64(w.limit-4*pageBytes) / perPass)
	passes := w.wanted
	if passes == 0 {
		passes = maxAhead
	}
	passes = max(1, min(passes, fit))
	keys := min(perPass*float64(passes), float64(w.limit-4*pageBytes)) / (tableBytesPerKey + doorBytesPerKey)
	table, err := offheap.Map(int(roundUp(int64(keys*tableBytesPerKey), pageBytes)))
	if err != nil {
		return err
	}
	doors, err := offheap.Map(int(roundUp(int64(keys*doorBytesPerKey), pageBytes)))
	if err != nil {
		return errors.Join(err, offheap.Unmap(table))
	}
	w.passes = passes
	w.table, w.doors = offheap.Uint64s(table), offheap.Uint64s(doors)
	w.span = max(1, (int64(passes)/w.perGrp+doorCount-2)/(doorCount-1))
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
func (w *window) groupAhead(a uint32) uint32 { return number(w.current + groupRing + int64(a)) }

// ahead is how many groups after the current one the group numbered n comes; 0
// where it came already.
func (w *window) ahead(n uint32) uint32 {
	a := (int64(n) - 1 - w.current%groupRing + 2*groupRing) % groupRing
	if a > maxAhead {
		return 0
	}
	return uint32(a)
}

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
		return w.groupAhead(uint32(1 + bits.TrailingZeros64(set)))
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

// shrink looks less far where many keys of a pass found no room.
func (w *window) shrink(keys int) {
	if w.lost > int64(keys/20) && w.passes > 1 {
		w.passes -= max(1, w.passes/8)
	}
	w.lost = 0
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
	if w.passes == 0 {
		c.mu.bytes -= w.bytes()
		err := w.open(len(keys))
		c.mu.bytes += w.bytes()
		if err != nil {
			return false, err
		}
		w.current = max(w.current, pass/w.perGrp-1)
	}
	g := pass / w.perGrp
	if g <= w.current || pass > (w.current+1)*w.perGrp+int64(w.passes)-1 {
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
	w.shrink(len(keys))
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
			if at := group(m.state); at != 0 && w.ahead(at) != 0 {
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
