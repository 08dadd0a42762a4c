package newbucket

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/spool"
)

// Imported finds imported rows among those of a bucket, to which a large import may add thousands.
type Imported struct {
	*Content
	// Table is memory for a hash table with linear probing over the keys of the slot. An entry is
	// the key's index in Content.Keys plus 1, or 0. Only Table[:size] is in use.
	Table []uint32
	size  int
}

// Take sets the rows to those at the offsets in an area, of entry bytes each; of rows with the same
// key the last one counts. It clears the dirty rows of the previous slot.
func (m *Imported) Take(area *spool.Area, offsets []uint32, entry int) {
	w := m.Content
	w.NoDirty()
	w.Keys, w.Hashes, w.Rows, w.replaced = w.Keys[:0], w.Hashes[:0], w.Rows[:0], -1 // the keys may differ from the old bucket's
	m.size = spool.KeyTable(len(offsets))
	clear(m.Table[:m.size])
	for _, at := range offsets {
		key, row := area.Entry(at, entry)
		m.set(key, row)
	}
}

// set adds an imported row, or replaces an earlier one with the same key.
func (m *Imported) set(key uint64, row []float32) {
	w := m.Content
	i := m.place(key, w.Hash.Of(key))
	if at := m.Table[i]; at != 0 {
		w.Rows[at-1] = row
		return
	}
	w.add(key, row, nil)
	m.Table[i] = uint32(len(w.Keys))
}

// place is the entry of the table in which a key is, or would be.
func (m *Imported) place(key, hash uint64) int {
	// The low bits of the hash are those of the slot.
	i := int(hash>>40) & (m.size - 1)
	for m.Table[i] != 0 && m.Keys[m.Table[i]-1] != key {
		i = (i + 1) & (m.size - 1)
	}
	return i
}

// Find returns the index of an imported key in Content.Keys, or -1 if there is none.
func (m *Imported) Find(key uint64) int {
	return int(m.Table[m.place(key, m.Hash.Of(key))]) - 1
}

// AddDirtyOthers adds the dirty rows whose keys are not imported.
func (m *Imported) AddDirtyOthers() {
	for i, key := range m.dirtyKeys {
		if m.Find(key) < 0 {
			m.add(key, m.dirtyRow(i), nil)
		}
	}
}

// AddOld adds the rows of the old bucket whose keys are neither imported nor dirty.
func (m *Imported) AddOld(old *bucketfile.Bucket) {
	for i := range old.Len() {
		if key := old.Key(i); m.Find(key) < 0 && !slices.Contains(m.dirtyKeys, key) {
			m.add(key, old.Row(i), nil)
		}
	}
}
