package rowcache

import "math/bits"

// missing remembers which keys the announced passes need that are not cached,
// so that whoever reads buckets for other reasons knows which of their rows to
// take along, and so that a row that comes early stays until its pass:
//
//	line    16 entries, 64 bytes, chosen by the upper half of the hash
//	entry   tag (24 bits of the hash) << 8 | number of the first group
//
// An entry of a group that was pulled is free. Two keys with the same tag in
// one line are taken for one: then a row is taken along in vain, or comes when
// its pass asks for it.
type missing []uint32

const (
	missingLine = 16
	// missingBytesPerKey is for each key of each pass in the window: entries
	// for two fifths of them, at a load of three quarters. Of a cache that
	// nothing is in yet all are missing, once: then some find no room.
	missingBytesPerKey = 4 * 0.4 / 0.75
)

func (m missing) line(hash uint64) (entries []uint32, tag uint32) {
	at, _ := bits.Mul64(hash, uint64(len(m)/missingLine))
	// The lowest bits are the same for all keys of a slot.
	return m[at*missingLine:][:missingLine:missingLine], uint32(hash>>24) << 8
}

// touch loads what missed looks at, for several keys side by side.
func (m missing) touch(hashes []uint64) (sum uint32) {
	if len(m) == 0 {
		return 0
	}
	lines := uint64(len(m) / missingLine)
	for _, h := range hashes {
		at, _ := bits.Mul64(h, lines)
		sum |= m[at*missingLine]
	}
	return sum
}

// miss notes that group g needs a key that is not cached. known: an earlier
// group does, too; noted: it was not known, and there was room.
func (w *window) miss(hash uint64, g int64) (known, noted bool) {
	if len(w.missing) == 0 {
		return false, false
	}
	entries, tag := w.missing.line(hash)
	free := -1
	for i, e := range entries {
		if e == 0 {
			free = i
			continue
		}
		if e&^255 == tag {
			if w.ahead(e&255) > 0 {
				return true, false
			}
			free = i
			break
		}
	}
	for i := 0; free < 0; i++ {
		if i == missingLine {
			return false, false
		}
		if w.ahead(entries[i]&255) <= 0 {
			free = i
		}
	}
	entries[free] = tag | number(g)
	return false, true
}

// missed is the number of the first group that needs a key that is not cached,
// 0 where none does or it is not known.
func (w *window) missed(hash uint64) uint32 {
	entries, tag := w.missing.line(hash)
	for _, e := range entries {
		if e&^255 == tag && e != 0 && w.ahead(e&255) > 0 {
			return e & 255
		}
	}
	return 0
}

// arrive is missed for a key that is cached from now on.
func (w *window) arrive(hash uint64) uint32 {
	if len(w.missing) == 0 {
		return 0
	}
	entries, tag := w.missing.line(hash)
	for i, e := range entries {
		if e&^255 == tag && e != 0 {
			entries[i] = 0
			if w.ahead(e&255) > 0 {
				return e & 255
			}
		}
	}
	return 0
}

// sooner is that of two groups, by number, which comes first.
func (w *window) sooner(a, b uint32) uint32 {
	if aheadA, aheadB := w.ahead(a), w.ahead(b); aheadA == past || aheadB != past && aheadB < aheadA {
		return b
	}
	return a
}

// NotesMissing reports whether Missed knows anything.
func (c *Cache) NotesMissing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.win.missing) > 0
}

// Missed sets wanted[i] to whether an announced pass that was not pulled yet
// needs the key of hashes[i], which is not cached. It returns how many are. It
// may say so of a cached one.
func (c *Cache) Missed(hashes []uint64, wanted []bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.mu.win
	if len(w.missing) == 0 || w.newest <= w.current {
		clear(wanted[:len(hashes)])
		return 0
	}
	for len(hashes) > 0 {
		k := min(len(hashes), ahead)
		c.mu.touched = w.missing.touch(hashes[:k])
		for i, h := range hashes[:k] {
			if wanted[i] = w.missed(h) != 0; wanted[i] {
				n++
			}
		}
		hashes, wanted = hashes[k:], wanted[k:]
	}
	return n
}
