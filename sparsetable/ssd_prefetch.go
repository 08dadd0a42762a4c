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
		if t.readOnly && t.changing.Acquire(ctx) == nil {
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
func (t *ssd) wakePrefetch() {
	select {
	case t.ahead <- struct{}{}:
	default:
	}
}

// nextToPrefetch returns the first announced pass that has keys which were not
// looked at yet. REQUIRES: changing is held, so that no announcement is taken off
// the list.
func (t *ssd) nextToPrefetch() *announcement {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range min(len(t.mu.announced), prefetchPasses) {
		a := t.mu.announced[i]
		if len(a.list) == 0 {
			a.list, a.again = a.again, nil
		}
		if len(a.list) > 0 {
			return a
		}
	}
	return nil
}

// roomToPrefetch reports whether the buckets of another step can be carried. If
// they were not, each of their rows would cost a second read when it leaves.
func (t *ssd) roomToPrefetch() bool {
	return t.carried.FreeBytes() >= t.plan.CarryBytes/4 // true for a table that is only read: it carries nothing, and both sides are 0
}
