// Package newbucket collects the rows of a bucket that is being rewritten: those of the old bucket,
// the dirty rows of the slot, which replace older versions, and, during a large import, the
// imported rows, which replace both.
package newbucket

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// Content holds the rows of one bucket at a time; its memory is reused.
type Content struct {
	Hash slots.Hasher

	// The dirty rows of the current slot: their references in the cache, their keys, and copies of
	// their words, one row after the other.
	DirtyRefs []uint32
	dirtyKeys []uint64
	words     []float32

	// The rows of the new bucket.
	Keys   []uint64
	Hashes []uint64
	Rows   [][]float32
	// replaced is how many rows of the old bucket the dirty ones replace; -1: not counted.
	replaced int
}

// NoDirty clears the dirty rows of the previous slot.
func (w *Content) NoDirty() {
	w.DirtyRefs, w.dirtyKeys, w.words = w.DirtyRefs[:0], w.dirtyKeys[:0], w.words[:0]
}

// AddDirty copies a dirty row.
func (w *Content) AddDirty(ref uint32, key uint64, row []float32) {
	w.DirtyRefs = append(w.DirtyRefs, ref)
	w.dirtyKeys = append(w.dirtyKeys, key)
	w.words = append(w.words, row...)
}

// dirtyRow returns the copy of dirty row i.
func (w *Content) dirtyRow(i int) []float32 {
	words := len(w.words) / len(w.dirtyKeys)
	return w.words[i*words : (i+1)*words]
}

// Merge sets the rows to those of the old bucket, which may be nil, and the dirty ones; of rows
// with the same key it takes the dirty one. If pick is not nil, it leaves out the rows for whose
// hash pick returns false.
func (w *Content) Merge(old *bucketfile.Bucket, pick func(hash uint64) bool) {
	w.Keys, w.Hashes, w.Rows, w.replaced = w.Keys[:0], w.Hashes[:0], w.Rows[:0], 0
	if old != nil {
		w.AddOthers(old, pick)
	}
	for i, key := range w.dirtyKeys {
		w.add(key, w.dirtyRow(i), pick)
	}
}

// AddOthers adds the rows of b whose keys are not among the dirty ones and, if pick
// is not nil, for which pick returns true.
func (w *Content) AddOthers(b *bucketfile.Bucket, pick func(hash uint64) bool) {
	for i := range b.Len() {
		if key := b.Key(i); !slices.Contains(w.dirtyKeys, key) { // the list is short
			w.add(key, b.Row(i), pick)
		} else {
			w.replaced++
		}
	}
}

// add adds a row, unless pick returns false for it.
func (w *Content) add(key uint64, row []float32, pick func(hash uint64) bool) {
	h := w.Hash.Of(key)
	if pick != nil && !pick(h) {
		return
	}
	w.Keys = append(w.Keys, key)
	w.Hashes = append(w.Hashes, h)
	w.Rows = append(w.Rows, row)
}

// SameKeys reports whether the new bucket has exactly the keys of the old one, which had before
// rows.
func (w *Content) SameKeys(before int) bool {
	return w.replaced == len(w.dirtyKeys) && len(w.Keys) == before
}

// Filter removes the rows for which drop returns true and returns their number.
func (w *Content) Filter(drop func(row []float32) bool) (dropped int) {
	n := 0
	for i, row := range w.Rows {
		if drop(row) {
			continue
		}
		w.Keys[n], w.Hashes[n], w.Rows[n] = w.Keys[i], w.Hashes[i], row
		n++
	}
	dropped = len(w.Rows) - n
	w.Keys, w.Hashes, w.Rows = w.Keys[:n], w.Hashes[:n], w.Rows[:n]
	return dropped
}
