package sparsetable

// A snapshot writes the pages of the index that changed since the last one. A page that
// changes again before it is written is copied first. The copies have a part of the
// budget; when they have filled it, whoever is about to change the index waits until
// the snapshot has written some of them. So the budget holds however many pages change.

// pageShare bounds the copies: they take at most one part in pageShare of the budget,
// where the cache can spare it.
const pageShare = 64

// leastPageBytes is how many bytes the copies need at least. They are reserved from the
// start, and so is the memory for the catalog's lists, so that a snapshot can be taken
// where no row can leave the cache. REQUIRES: indexMu is held, or rewrite.
func (t *ssd) leastPageBytes() int64 { return t.index.LeastCaptureBytes() }

// mostPageBytes is how many bytes the copies may take where the cache can spare them.
// REQUIRES: indexMu is held, or rewrite.
func (t *ssd) mostPageBytes() int64 {
	return max(t.leastPageBytes(), min(t.index.Bytes(), t.opts.MemoryBytes/pageShare))
}

// snapshotListBytes is what the catalog's lists of pages, old and new, take for a
// snapshot beside those that it has already. REQUIRES: indexMu is held, or rewrite.
func (t *ssd) snapshotListBytes() int64 { return 24 * int64(t.index.Pages()) }

// awaitPages waits until the index may be changed. REQUIRES: rewrite is held, and moving
// is not.
func (t *ssd) awaitPages() {
	for t.pageBytes.Load() > 0 { // a snapshot is being written
		t.indexMu.RLock()
		full := t.index.CaptureFull(t.pageBytes.Load())
		t.indexMu.RUnlock()
		if !full {
			return
		}
		<-t.pageTaken
	}
}

// tookPage wakes whoever waits in awaitPages.
func (t *ssd) tookPage() {
	select {
	case t.pageTaken <- struct{}{}:
	default:
	}
}
