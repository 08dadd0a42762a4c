package ssd

import (
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/inorder"
	"aibox/sparsetable/internal/newbucket"
)

// rewriting is the state that all writers of buckets share. Its Mutex is the lock rewrite, which
// guards every field without another lock.
type rewriting struct {
	sync.Mutex
	compacting guard.Lock // held while a file is emptied
	moving     sync.Mutex // held while rows of the cache are copied to a bucket

	rewriter
	stored   int64 // rows in buckets
	scanning int   // scans in progress, during which no slot is split or merged
	merging  bool  // slots are being merged until there are few enough
	unsplit  error // the last split failed with this error because the disk is full
	// fewFilters says that the warning about missing filters was logged.
	fewFilters bool
	sweep      sweep
	shrinking  shrinking
	// windowLimit is the number of bytes that the window of announced passes may take.
	windowLimit int64
}

// scan keeps slots from being split or merged until end is called. REQUIRES: the lock is held for
// scan, but not for end.
func (r *rewriting) scan() (end func()) {
	r.scanning++
	return func() {
		r.Lock()
		defer r.Unlock()
		r.scanning--
	}
}

// rewriter is the scratch memory for rewriting buckets. It belongs to the holder of rewrite.
type rewriter struct {
	queue    *bucketfile.Queue
	ordered  *inorder.Reader // reads through queue
	requests []bucketfile.Request
	submit   []*bucketfile.Request
	done     []*bucketfile.Request

	victims []uint32
	slots   []uint32
	newbucket.Content

	// urgent says that writing makes room, so that it may use the disk space that is reserved for
	// this purpose.
	urgent bool
	// moves says that compaction writes, which frees more than it writes.
	moves bool

	counts rewriteCounts
}

// rewriteCounts are counters since the table was opened. Guarded by rewrite.
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
