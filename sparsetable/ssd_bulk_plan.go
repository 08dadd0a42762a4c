package sparsetable

import (
	"context"
	"errors"

	"aibox/sparsetable/internal/plan"
)

// bulkPlan says how a large import uses memory.
type bulkPlan struct {
	smallRows  int64 // imports of up to so many rows go through the cache
	arenaBytes int64 // the most memory for the spool's buffers, and later for partitions
	minBlock   int   // bytes of a write to the spool, unless memory is scarce
}

const (
	// A small import may take this part of the cache, whatever is in it.
	bulkSmallShare = 16
	// bulkMaxArena is enough for all partitions of a spool, with the largest blocks.
	bulkMaxArena = 160 << 20
	// For writes smaller than bulkMinBlock their number matters more than their bytes.
	bulkMinBlock = 64 << 10
	// The lists of blocks may take one part in bulkListShare of the borrowed
	// memory; the arena is the rest.
	bulkListShare = 16
)

func planBulk(p *plan.Plan, fitRows int64) bulkPlan {
	return bulkPlan{
		smallRows:  max(importBatch, fitRows/bulkSmallShare),
		arenaBytes: min(p.CacheBytes/2, bulkMaxArena),
		minBlock:   bulkMinBlock,
	}
}

// borrowSteps is the number of steps in which borrow takes its memory. Dirty rows
// leave the cache for it, so after each step the space on disk is checked.
const borrowSteps = 16

// borrow takes bytes of memory from the cache, until giveBack. Errors: errNoVictims
// where the cache cannot give as many.
func (t *ssd) borrow(ctx context.Context, bytes int64) error {
	for i := range int64(borrowSteps) {
		if err := t.reserveNow(ctx, bytes*(i+1)/borrowSteps); err != nil {
			return err
		}
		if err := t.keepSpace(ctx); err != nil {
			return err
		}
	}
	t.borrowed.Add(bytes)
	return nil
}

// giveBack ends borrow.
func (t *ssd) giveBack(bytes int64) {
	t.borrowed.Add(-bytes)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	// The cache may grow again. It does not have to shrink for that, so there is no
	// error. If it has to shrink for another reason and cannot, the next call that
	// needs room returns the error.
	_ = t.reserve(0)
}

// borrowUpTo borrows bytes, or half of them, or a quarter and so on, but not less
// than least. It returns how many it borrowed, or 0 where the cache cannot give
// even that.
func (t *ssd) borrowUpTo(ctx context.Context, bytes, least int64) (int64, error) {
	for ; bytes >= least; bytes /= 2 {
		err := t.borrow(ctx, bytes)
		if err == nil {
			return bytes, nil
		}
		if !errors.Is(err, errNoVictims) {
			return 0, err
		}
	}
	return 0, nil
}
