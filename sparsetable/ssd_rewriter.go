package sparsetable

import (
	"slices"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// rewriter is the scratch memory for rewriting buckets. It belongs to the holder of
// rewrite.
type rewriter struct {
	hash slots.Hasher

	queue    *bucketfile.Queue
	requests []bucketfile.Request
	submit   []*bucketfile.Request
	done     []*bucketfile.Request
	finish   []*bucketfile.Request

	victims []uint32
	slots   []uint32

	// The dirty rows of the present slot.
	dirtyRefs []uint32
	dirtyKeys []uint64
	words     []float32

	// The rows of its new bucket.
	keys   []uint64
	hashes []uint64
	rows   [][]float32
	// replaced is how many rows of the old bucket the dirty ones replace.
	replaced int

	// urgent says that what is written makes room, so that it may use the disk
	// space that is reserved for that.
	urgent bool
	// moves says that compaction writes: it frees more than it writes.
	moves bool

	counts rewriteCounts
}

// rewriteCounts are counters since the table was opened, under rewrite.
type rewriteCounts struct {
	flushedRows, flushedSlots int64
	reads, readBytes          int64
	writtenBytes              int64 // of buckets, without the padding of writes to their files
	importedRows              int64 // by imports that bypass the cache
	importedBytes             int64 // the part of writtenBytes for those rows
	splits, merges            int64
	compactedBytes            int64
	droppedRows               int64
}

// merge sets keys, hashes and rows to the rows of the old bucket and the dirty
// rows; of rows with the same key it takes the dirty one. If pick is not nil, it
// leaves out the rows for whose hash pick returns false.
func (w *rewriter) merge(old *bucketfile.Bucket, pick func(hash uint64) bool) {
	w.keys, w.hashes, w.rows, w.replaced = w.keys[:0], w.hashes[:0], w.rows[:0], 0
	if old != nil {
		w.addOthers(old, pick)
	}
	if n := len(w.dirtyKeys); n > 0 {
		words := len(w.words) / n
		for i, key := range w.dirtyKeys {
			w.add(key, w.words[i*words:(i+1)*words], pick)
		}
	}
}

// addOthers adds the rows of b whose keys are not among the dirty ones and, if pick
// is not nil, for which pick returns true.
func (w *rewriter) addOthers(b *bucketfile.Bucket, pick func(hash uint64) bool) {
	for i := range b.Len() {
		if key := b.Key(i); !slices.Contains(w.dirtyKeys, key) { // the list is short
			w.add(key, b.Row(i), pick)
		} else {
			w.replaced++
		}
	}
}

// add adds a row, unless pick returns false for it.
func (w *rewriter) add(key uint64, row []float32, pick func(hash uint64) bool) {
	h := w.hash.Of(key)
	if pick != nil && !pick(h) {
		return
	}
	w.keys = append(w.keys, key)
	w.hashes = append(w.hashes, h)
	w.rows = append(w.rows, row)
}

// sameKeys reports whether the new bucket has the keys of the old one, which had so many
// rows, and no others.
func (w *rewriter) sameKeys(before int) bool {
	return w.replaced == len(w.dirtyKeys) && len(w.keys) == before
}

// filter takes out the rows that drop condemns and returns their number.
func (w *rewriter) filter(drop func(row []float32) bool) (dropped int) {
	n := 0
	for i, row := range w.rows {
		if drop(row) {
			continue
		}
		w.keys[n], w.hashes[n], w.rows[n] = w.keys[i], w.hashes[i], row
		n++
	}
	dropped = len(w.rows) - n
	w.keys, w.hashes, w.rows = w.keys[:n], w.hashes[:n], w.rows[:n]
	return dropped
}
