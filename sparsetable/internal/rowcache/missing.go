package rowcache

import "math/bits"

// missing remembers which uncached keys the announced passes need. A caller that reads a bucket for
// other reasons asks it which other rows of the bucket to put into the cache; such a row stays
// until its pass:
//
//	line    16 entries, 64 bytes, chosen by the upper half of the hash
//	entry   tag (24 bits of the hash) << 8 | number of the first group
//
// An entry of a group that was pulled is free. Two keys with the same tag in one line are mistaken
// for one key. That is harmless: a row is cached needlessly, or is read only when its pass is
// pulled.
type missing []uint32

const (
	missingLine = 16
	// missingBytesPerKey is the number of bytes for each key of each pass in the window: entries
	// for two fifths of the keys, at a load of three quarters. While the cache is still empty, all
	// keys are missing, and some of them find no room.
	missingBytesPerKey = 4 * 0.4 / 0.75
)

func (m missing) line(hash uint64) (entries []uint32, tag uint32) {
	at, _ := bits.Mul64(hash, uint64(len(m)/missingLine))
	// The lowest bits are the same for all keys of a slot.
	return m[at*missingLine:][:missingLine:missingLine], uint32(hash>>24) << 8
}

// touch loads what missed will read, for several keys side by side.
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

// miss notes that group g needs a key that is not cached. known says that an announced group was
// already noted for the key; noted says that none was and that g is noted now. If there is no room,
// both are false.
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

// missed is the number of the first group that is known to need an uncached key, or 0 if there is
// none.
func (w *window) missed(hash uint64) uint32 {
	entries, tag := w.missing.line(hash)
	for _, e := range entries {
		if e&^255 == tag && e != 0 && w.ahead(e&255) > 0 {
			return e & 255
		}
	}
	return 0
}

// arrive is missed and removes the key, because it is cached from now on.
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

// earlier returns the number of the group that comes first of the two.
func (w *window) earlier(a, b uint32) uint32 {
	if aheadA, aheadB := w.ahead(a), w.ahead(b); aheadA == past || aheadB != past && aheadB < aheadA {
		return b
	}
	return a
}

// NotesMissing reports whether the window notes which announced keys are not
// cached, so that Missed can find any.
func (c *Cache) NotesMissing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.win.missing) > 0
}

// Missed sets wanted[i] to whether a pass that was announced but not yet pulled needs the key of
// hashes[i], which is not cached. It returns how many keys are wanted. They may include false
// positives: keys that are cached or that no pass needs.
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
