package ssd

import (
	"context"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/rowcache"
)

// Flush implements sparsetable.Flusher.
func (t *Table) Flush(ctx context.Context) error {
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
			return apierr.Of(err)
		}
		if end {
			at = 0 // start again, as rows may have moved
		}
		if err := t.keepSpace(ctx); err != nil {
			return apierr.Of(err)
		}
	}
}

// flushFrom writes the next dirty rows in memory order, with the other dirty rows of their slots.
// Placeholders, which are never written, become clean.
func (t *Table) flushFrom(from uint32, refs []uint32) (used []uint32, next uint32, end bool, err error) {
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
