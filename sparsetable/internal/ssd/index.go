package ssd

import (
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// indexed is the index of buckets.
type indexed struct {
	indexMu sync.RWMutex
	index   *slots.Index
}

// bucketOf is the location of the bucket of a hash's slot. REQUIRES: indexMu is held, or the table
// was opened for reading only.
func (x *indexed) bucketOf(hash uint64) bucketfile.Location {
	return bucketfile.Location(x.index.Location(x.index.Slot(hash)))
}

// closeIndex frees the memory of the index.
func (x *indexed) closeIndex() error {
	if x.index == nil {
		return nil
	}
	x.indexMu.Lock()
	defer x.indexMu.Unlock()
	return x.index.Close()
}
