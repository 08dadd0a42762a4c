package rowcache

import (
	"math/bits"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

// window knows which announced passes need which keys. It counts passes in groups;
// a group is one pass, unless the window looks more than 50 passes ahead.
//
// The state of a cached row says which group needs the row next. Beyond that, only keys that two or
// more announced passes need matter; on the trace of bench/policies these are a ninth of all
// announced keys. They are in table:
//
//	line    8 entries, 64 bytes, chosen by the upper half of the hash
//	entry   tag (12 bits of the hash) << 52 | set of groups
//	set     bit g mod 52: group g needs the key; 0: the entry is empty
//
// doorkeeper knows which keys have been announced once. It consists of Bloom filters, each for the keys
// that are first announced in one third of the window:
//
//	line    4 words, 32 bytes, chosen by the upper half of the hash
//	word    of filter (g / span) mod 4: 4 bits a key
//
// With Options.NoteMissing, missing knows which announced keys are not cached.
//
// Tags may collide, and the filters have false positives. The only consequence is that a row stays
// longer than necessary.
type window struct {
	limit   int64 // maximum size in bytes
	yielded bool  // its memory was given to rows, see YieldWindow
	waiting int64 // bytes it waits for, because rows have taken the budget
	wanted  int   // Options.LookaheadPasses
	misses  bool  // Options.NoteMissing
	passes  int   // how many passes ahead it can look; 0 until the first Announce
	sized   int   // number of keys of a pass for which it was made
	perGrp  int64 // passes in a group
	current int64 // group of the pass last pulled; -1: none
	place   int   // of current in the ring of groups
	newest  int64 // group last announced
	lost    int64 // keys of the current pass whose line was full

	again int64                // keys in table; those added since the last advance may count twice
	early [groupRing + 1]int32 // by group number: the uncached keys that this group was the first to need

	table      []uint64
	doorkeeper []uint64
	missing    missing
	memory     []byte // the memory of these tables

	span  int64                    // number of groups per filter
	epoch [doorkeeperFilters]int64 // of each filter: it is for the span groups from epoch*span on
}

const (
	setBits = 52
	setMask = 1<<setBits - 1
	// maxAhead is the number of groups beyond the one pulled last for which a set has bits. The bit
	// of the group pulled last stays free, so that these are the group that is pulled next and
	// maxLook more.
	maxAhead = setBits - 1
	maxLook  = maxAhead - 1

	lineEntries       = 8
	doorkeeperFilters = 4
	doorkeeperProbes  = 4

	// groupRing is the modulus of the 8 bits for a group in a row's state.
	groupRing = 255

	// Bytes for each key of each pass in the window, measured on the trace of bench/policies. The
	// table needs 0.14 entries, including the filters' false positives, at a load of 0.75. The
	// filters need 12 bits for each of 0.16 x 4 new keys.
	tableBytesPerKey      = 1.5
	doorkeeperBytesPerKey = 1.0

	// If missing keys are read before their pass, the cache holds the rows of some earlyPasses
	// passes that are being pulled, are waiting or are being trained. For each key of each pass in
	// the window it also holds earlyRowsPerKey rows: those that were read for a pass, and dirty
	// ones that wait until their bucket is read. (Measured on the log of bench/speed with a tenth
	// of 2.7 million rows in memory: passes of 14,000, 25,000 and 44,000 keys were pulled fastest
	// with windows of 40, 25 and 8.)
	earlyPasses, earlyRowsPerKey = 3, 0.6
	// A window of fewer passes does not note missing keys: a round through all buckets in so few
	// passes would read too much in each.
	fewestEarly = 6

	// A window is made for passes of at least minPassKeys keys.
	minPassKeys = 512

	// The window takes at most 1/WindowShare of the budget.
	WindowShare = 8
)

func (w *window) init(passes int, noteMissing bool, limit int64) {
	*w = window{wanted: passes, misses: noteMissing, limit: limit, newest: -1, perGrp: 1}
	w.setCurrent(-1)
	if passes > maxLook {
		w.perGrp = int64(passes+maxLook-1) / maxLook
	}
}

// bytes is how many bytes the window takes.
func (w *window) bytes() int64 {
	return int64(len(w.table)+len(w.doorkeeper))*8 + int64(len(w.missing))*4
}

// windowBytes is how many bytes each part of a window takes.
type windowBytes struct{ table, doorkeeper, missing int64 }

func (b windowBytes) total() int64 { return b.table + b.doorkeeper + b.missing }

// fit is how many passes of that many keys the window can hold beyond the next one to be pulled.
func (w *window) fit(keys int, missingPerKey float64) int {
	bytes := float64(w.limit-3*pageBytes) / (tableBytesPerKey + doorkeeperBytesPerKey + missingPerKey)
	return int(bytes/float64(max(keys, minPassKeys))) - 1
}

// fitEarly is how many passes of that many keys a cache of that many rows can hold beyond the next
// one to be pulled, if missing keys are read before their pass.
func fitEarly(keys int, rows int64) int {
	return int((float64(rows)/float64(max(keys, minPassKeys)) - earlyPasses) / earlyRowsPerKey)
}

// choose decides, from the size of the first pass, how far to look ahead if the options leave that
// open: 50 passes, or 100 passes in groups of two if missing keys are to be noted and there is room
// for that many. The caller goes through all buckets once in as many passes as are announced; with
// 100 passes it reads half as many in each.
func (w *window) choose(keys int, rows int64) {
	if w.wanted > 0 || w.newest >= 0 || w.current >= 0 {
		return // too late: groups are already in use
	}
	w.perGrp = 1
	if w.misses && min(w.fit(keys, missingBytesPerKey), fitEarly(keys, rows)) >= 2*maxLook {
		w.perGrp = 2
	}
}

// plan returns how many passes of that many keys the window can hold in a cache of that many rows,
// and the bytes that it takes for them. It includes missing keys if there is room for as many
// passes with them as the options want, or at least 50. If the options leave the number open, fewer
// are enough: as many as the cache has rows for.
func (w *window) plan(keys int, rows int64) (passes int, b windowBytes) {
	wanted, enough := w.wanted, min(w.wanted, maxLook)
	early := w.fit(keys, missingBytesPerKey)
	if wanted == 0 {
		wanted, enough = maxLook*int(w.perGrp), fewestEarly
		early = min(early, fitEarly(keys, rows))
	}
	passes = min(wanted, w.fit(keys, 0))
	missingPerKey := 0.0
	if w.misses && min(wanted, early) >= enough {
		passes, missingPerKey = min(wanted, early), missingBytesPerKey
	}
	if passes < 1 {
		return 0, windowBytes{}
	}
	all := float64(max(keys, minPassKeys) * (passes + 1))
	of := func(perKey float64) int64 { return roundUp(int64(all*perKey), pageBytes) }
	return passes, windowBytes{of(tableBytesPerKey), of(doorkeeperBytesPerKey), of(missingPerKey)}
}

// open makes the window as planned.
func (w *window) open(passes int, b windowBytes) error {
	memory, err := offheap.Map(int(b.total()))
	if err != nil {
		return err
	}
	w.passes, w.memory, w.again = passes, memory, 0
	all := offheap.Uint64s(memory)
	w.table, all = all[:b.table/8:b.table/8], all[b.table/8:]
	w.doorkeeper = all[: b.doorkeeper/8 : b.doorkeeper/8]
	if b.missing > 0 {
		w.missing = unsafe.Slice((*uint32)(unsafe.Pointer(&all[b.doorkeeper/8])), b.missing/4)
	}
	// The window's passes/perGrp + 1 groups lie in doorCount - 1 spans and a part of another one,
	// and each span has its own filter.
	w.span = (int64(passes)/w.perGrp + doorkeeperFilters - 1) / (doorkeeperFilters - 1)
	for i := range w.epoch {
		w.epoch[i] = -1
	}
	return nil
}

func (w *window) close() error {
	if w.memory == nil {
		return nil
	}
	err := offheap.Unmap(w.memory)
	w.memory, w.table, w.doorkeeper, w.missing = nil, nil, nil, nil
	return err
}

// number is the number, 1 to 255, that stands for group g in a row's state.
func number(g int64) uint32 { return 1 + uint32(g%groupRing) }

// groupAhead is the number of the group that comes a groups after the current one.
func (w *window) groupAhead(a int) uint32 { return number(w.current + groupRing + int64(a)) }

// ahead is how many groups after the current one the group with number n comes. It is past if that
// group has already been pulled, or if n is 0, which stands for no group. It must be fast, because
// it is called for every row that a sweep examines.
func (w *window) ahead(n uint32) int {
	if n == 0 {
		return past
	}
	a := int(n) - 1 - w.place
	if a < 0 {
		a += groupRing
	}
	if a > maxAhead {
		return past
	}
	return a
}

const past = -1

func (w *window) setCurrent(g int64) {
	w.current = g
	w.place = int((g%groupRing + groupRing) % groupRing)
}

// line returns the entries in which a key with that hash may be, and its tag.
func (w *window) line(hash uint64) (entries []uint64, tag uint64) {
	lines := uint64(len(w.table) / lineEntries)
	at, _ := bits.Mul64(hash, lines)
	return w.table[at*lineEntries:][:lineEntries:lineEntries], hash >> 8 << setBits
}

// next is the number of the first group after the current one that is known to need a key with that
// hash, or 0 if there is none.
func (w *window) next(hash uint64) uint32 {
	if len(w.table) == 0 || w.newest <= w.current {
		return 0
	}
	entries, tag := w.line(hash)
	for _, e := range entries {
		if e&setMask == 0 || e&^setMask != tag {
			continue
		}
		// The set is rotated so that bit 0 is the group after the current one.
		turn := uint((w.current + 1) % setBits)
		set := (e&setMask)>>turn | e<<(setBits-turn)&setMask
		return w.groupAhead(1 + bits.TrailingZeros64(set))
	}
	return 0
}

// touch loads what note and seenBefore will read, for several keys side by side.
func (w *window) touch(hashes []uint64) uint32 {
	lines, doorkeeper := uint64(len(w.table)/lineEntries), uint64(len(w.doorkeeper)/doorkeeperFilters)
	sum := uint64(0)
	for _, h := range hashes {
		line, _ := bits.Mul64(h, lines)
		filter, _ := bits.Mul64(h, doorkeeper)
		sum |= w.table[line*lineEntries] | w.doorkeeper[filter*doorkeeperFilters]
	}
	return uint32(sum)
}

// note records in the table that group g needs a key, if the key is already in the table, if again
// says that another group also needs it, or if doorkeeper knows it.
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
	if !again && !w.seenBefore(hash, g) {
		return
	}
	if empty < 0 {
		w.lost++
		return
	}
	entries[empty] = tag | bit
	w.again++
}

// seenBefore reports whether doorkeeper knows the key from an earlier announcement. If not, it adds it.
func (w *window) seenBefore(hash uint64, g int64) bool {
	lines := uint64(len(w.doorkeeper) / doorkeeperFilters)
	at, rest := bits.Mul64(hash, lines)
	line := w.doorkeeper[at*doorkeeperFilters:][:doorkeeperFilters:doorkeeperFilters]
	rest *= 0x9e3779b97f4a7c15 // the product's low half repeats hash's low bits
	probe := uint64(0)
	for i := range doorkeeperProbes {
		probe |= 1 << (rest >> (64 - 6*(i+1)) & 63)
	}
	oldest := (w.current + 1) / w.span
	for i, word := range line {
		if w.epoch[i] >= oldest && word&probe == probe {
			return true
		}
	}
	line[(g/w.span)%doorkeeperFilters] |= probe
	return false
}

// begin prepares for the keys of group g.
func (w *window) begin(g int64) {
	if g > w.newest {
		w.newest = g
		w.early[number(g)] = 0
	}
	e := g / w.span
	if at := e % doorkeeperFilters; w.epoch[at] != e {
		w.epoch[at] = e
		for i := int(at); i < len(w.doorkeeper); i += doorkeeperFilters {
			w.doorkeeper[i] = 0
		}
	}
}

// advance makes g the current group and forgets g and all groups before it.
func (w *window) advance(g int64) {
	if len(w.table) > 0 && w.newest > w.current {
		gone := uint64(0)
		for i := w.current + 1; i <= min(g, w.current+setBits); i++ {
			gone |= 1 << (i % setBits)
		}
		again := int64(0)
		for i, e := range w.table {
			e &^= gone
			w.table[i] = e
			if e&setMask != 0 {
				again++
			}
		}
		w.again = again
	}
	w.setCurrent(g)
}

// Announce tells the policy Lookahead that pass will need keys. Passes are announced in ascending
// order, before they are pulled. With Options.NoteMissing, missing, unless it is nil, is called
// with the hashes of keys that are not cached and that no pass announced before needs, except keys
// that there was no room to note. It is called with some of them at a time, and must not keep the
// slice. Announce reports whether it noted the pass. It does not if the policy does not look ahead,
// if the pass lies beyond the window, or if the pass was already pulled.
func (c *Cache) Announce(pass int64, keys []uint64, missing func(hashes []uint64)) (noted bool, err error) {
	if !c.rules.window || pass < 0 || len(keys) == 0 {
		return false, nil
	}
	c.announcing.Lock()
	defer c.announcing.Unlock()
	g, err := c.beginAnnounce(pass, len(keys))
	if g < 0 || err != nil {
		return false, err
	}
	var hashes [lockKeys]uint64
	for len(keys) > 0 {
		n := min(len(keys), lockKeys)
		for i, k := range keys[:n] {
			hashes[i] = c.hash(k)
		}
		c.mu.Lock()
		if g <= c.mu.win.current {
			c.mu.Unlock()
			return true, nil // it is already being pulled
		}
		m := c.announceLocked(g, keys[:n], hashes[:n], c.missed[:0])
		c.mu.Unlock()
		if missing != nil && len(m) > 0 {
			missing(m)
		}
		keys = keys[n:]
	}
	return true, nil
}

// announceLocked notes that group g needs keys. It appends to missing the hashes of keys that are
// not cached and were not yet noted as missing.
func (c *Cache) announceLocked(g int64, keys, hashes, missing []uint64) []uint64 {
	c.mu.stats.Announced += int64(len(keys))
	w := &c.mu.win
	var refs [ahead]uint32
	for len(keys) > 0 {
		n := min(len(keys), ahead)
		c.mu.touched = c.locate(keys[:n], hashes[:n], refs[:n]) | w.touch(hashes[:n]) | w.missing.touch(hashes[:n])
		for i, ref := range refs[:n] {
			if ref == 0 {
				known, noted := w.miss(hashes[i], g)
				w.note(hashes[i], g, known)
				if noted {
					w.early[number(g)]++
					missing = append(missing, hashes[i])
				}
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
	c.mu.stats.NotAnnounced += w.lost
	w.lost = 0
	return missing
}

// reach records that pass is now being pulled.
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
