package ssd

import (
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/inorder"
	"aibox/sparsetable/internal/newbucket"
)

// rewriting is what those share who write buckets. Its Mutex is the lock rewrite, which
// guards all that no other lock is named for.
type rewriting struct {
	sync.Mutex
	compacting guard.Lock // held while a file is emptied
	moving     sync.Mutex // held while rows of the cache are copied to a bucket

	rewriter
	stored   int64 // rows in buckets
	scanning int   // scans under way: no slot is split or merged
	merging  bool  // there are too many slots
	unsplit  error // the disk is too full for what was to be split last
	// fewFilters says that the log has a warning about missing filters.
	fewFilters bool
	sweep      sweep
	shrinking  shrinking
	// windowLimit is how many bytes the window of announced passes may take.
	windowLimit int64
}

// scan prevents until end is called that slots are split or merged. REQUIRES: the lock
// is held; not for end.
func (r *rewriting) scan() (end func()) {
	r.scanning++
	return func() {
		r.Lock()
		defer r.Unlock()
		r.scanning--
	}
}

// rewriter is the scratch memory for rewriting buckets. It belongs to the holder of
// rewrite.
type rewriter struct {
	queue    *bucketfile.Queue
	ordered  *inorder.Reader // by the same queue
	requests []bucketfile.Request
	submit   []*bucketfile.Request
	done     []*bucketfile.Request

	victims []uint32
	slots   []uint32
	newbucket.Content

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
	reads, readBytes          int64 // for large imports; the others are counted by queue
	writtenBytes              int64 // of buckets, without the padding of writes to their files
	importedRows              int64 // by imports that bypass the cache
	importedBytes             int64 // the part of writtenBytes for those rows
	splits, merges            int64
	compactedBytes            int64
	droppedRows               int64
}
