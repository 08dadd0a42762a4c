package sparsetable

import (
	"context"

	"aibox/sparsetable/internal/rowcache"
)

// Flusher is what a Table implements that keeps updates in memory apart from
// where they are stored: that of KindSSD.
type Flusher interface {
	// Flush writes all rows that are dirty to the table's buckets. They stay in
	// memory. That makes nothing durable, which is Snapshot's part; but a
	// snapshot taken next has no dirty rows to save, and who opens it none to
	// restore. Must not run while working sets are pinned (ErrPinned). It writes
	// a bucket for every few rows, as they leaving memory would.
	Flush(ctx context.Context) error
}

// Flush implements Flusher.
func (t *ssd) Flush(ctx context.Context) error {
	done, err := t.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	var refs []uint32
	for at, end := uint32(0), false; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if at == 0 && t.cache.Stats().Dirty == 0 {
			return nil
		}
		if refs, at, end, err = t.flushFrom(at, refs[:0]); err != nil {
			return tableError(err)
		}
		if end {
			at = 0 // rows may have moved
		}
		if err := t.keepSpace(ctx); err != nil {
			return tableError(err)
		}
	}
}

// flushFrom writes the next dirty rows in memory order, with the others of their
// slots. Placeholders, which are never written, become clean.
func (t *ssd) flushFrom(from uint32, refs []uint32) (used []uint32, next uint32, end bool, err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	if err := t.keepShape(); err != nil {
		return refs, 0, false, err
	}
	next, end = t.cache.VisitFrom(from, rowcache.Pick{Has: rowcache.Dirty, Idle: true}, int(t.evictStep()), func(e rowcache.Entry) rowcache.Change {
		refs = append(refs, e.Ref)
		return rowcache.Change{}
	})
	return refs, next, end, t.clean(refs)
}
