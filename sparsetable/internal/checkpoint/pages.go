package checkpoint

import "aibox/sparsetable/internal/catalog"

// A snapshot writes the pages of the index that changed since the last one. A page that changes
// again before it is written is copied first. The copies have a part of the budget; when they fill
// it, whoever is about to change the index waits until the snapshot has written some of them. So
// the budget holds however many pages change.

// The copies take at most 1/pageShare of the budget, if the cache can spare it.
const pageShare = 64

// leastPageBytes is the number of bytes that the copies need at least. They are reserved from the
// start, like the memory for the catalog's lists, so that a snapshot can be taken even if no row
// can leave the cache. REQUIRES: the index is guarded.
func (c *Store) leastPageBytes() int64 { return c.Index.LeastCaptureBytes() }

// mostPageBytes is the number of bytes that the copies may take if the cache can spare them.
// REQUIRES: the index is guarded.
func (c *Store) mostPageBytes() int64 {
	return max(c.leastPageBytes(), min(c.Index.Bytes(), c.MemoryBytes/pageShare))
}

// nextListBytes is the size of the catalog's lists of pages, old and new, for a snapshot, in
// addition to the present lists. REQUIRES: the index is guarded.
func (c *Store) nextListBytes() int64 { return 24 * int64(c.Index.Pages()) }

// Memory is the memory that counts as taken for snapshots: blocks beyond those of the pool, the
// catalog's lists, and copies of pages. While no snapshot is being written, it is the least that
// the next one needs. REQUIRES: IndexMu is held for reading.
func (c *Store) Memory() (blocks, lists, pages int64) {
	lists, pages = c.Catalog.MemoryBytes()-catalog.FixedBytes, c.Index.CaptureBytes()
	if c.ReadOnly {
		return 0, lists, pages
	}
	if most := c.listBytes.Load(); most > 0 {
		lists = max(lists, most)
	} else {
		lists += c.nextListBytes()
	}
	return c.blockBytes.Load(), lists, max(pages, c.pageBytes.Load(), c.leastPageBytes())
}

// AwaitPages waits until the index may be changed. REQUIRES: the caller is the one that writes
// buckets, and does not hold the lock that keeps rows from moving.
func (c *Store) AwaitPages() {
	for c.pageBytes.Load() > 0 { // a snapshot is being written
		if !c.PagesFull() {
			return
		}
		<-c.pageTaken
	}
}

// PagesFull reports whether the copies of pages have used up their memory.
func (c *Store) PagesFull() bool {
	c.IndexMu.RLock()
	defer c.IndexMu.RUnlock()
	return c.Index.CaptureFull(c.pageBytes.Load())
}

// PageBytes is the number of bytes that the copies of pages may take; 0: no snapshot is being
// written.
func (c *Store) PageBytes() int64 { return c.pageBytes.Load() }

// tookPage wakes the caller of AwaitPages.
func (c *Store) tookPage() {
	select {
	case c.pageTaken <- struct{}{}:
	default:
	}
}
