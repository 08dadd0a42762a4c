package sparsetable

import (
	"context"

	"aibox/internal/panics"
)

// Prefetching reads the missing rows of announced passes into the cache before
// their Pull (BagPipe §3.2). It is out of order: a later pass's rows are read
// before an earlier pass is trained. The elevator does it for all passes at a time
// (ssd_elevator.go). Where that does not pay, or where the budget is too small to
// record which of the announced keys are missing, it is done pass by pass
// (ssd_direct.go). It is bounded by the part that it may take of the cache and of
// the memory for carried buckets. It writes nothing, and lets only clean rows leave
// the cache. Rows that it did not come to, or failed to read, are read by the Pull.

// prefetchPasses is how many passes beyond the one pulled last are read ahead one
// by one. Reading farther ahead gains little, because the number of missing keys
// varies little from pass to pass.
const prefetchPasses = 8

// prefetchLoop is the goroutine that prefetches.
func (t *ssd) prefetchLoop(ctx context.Context) {
	defer panics.Exit("reading ahead in the table")
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.ahead:
		}
		t.elevator.full.Store(false)
		if t.opts.ReadOnly && t.changing.Acquire(ctx) == nil {
			// Nothing else makes room for the window of announced passes. If there
			// is no room, nothing is read ahead.
			_ = t.reserveNow(ctx, 0)
			t.changing.Release()
		}
		for t.rideAhead(ctx) {
		}
	}
}

// wakePrefetch makes the prefetcher look for work.
func (l *lookahead) wakePrefetch() {
	select {
	case l.ahead <- struct{}{}:
	default:
	}
}

// roomToPrefetch reports whether the buckets of another step can be carried. If
// they were not, each of their rows would cost a second read when it leaves.
func (t *ssd) roomToPrefetch() bool {
	return t.carried.Roomy() // true for a table that is only read: it carries nothing, and a quarter of nothing is free
}
