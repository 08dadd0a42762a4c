package sparsetable

import (
	"context"

	"aibox/internal/panics"
)

// Prefetching reads the missing rows of announced passes into the cache before
// their Pull (BagPipe §3.2): out of order, as a later pass's reads come before an
// earlier pass's training. The elevator does it for all passes at a time
// (ssd_elevator.go); where that does not pay, or the budget is too small to know
// which of all announced keys are missing, it is done pass by pass (ssd_direct.go).
// It is bounded by what it may take of the cache and of the room for carried
// buckets; it writes nothing, and lets only clean rows leave. Whatever it did not
// get to, or failed to read, the Pull itself reads.

// prefetchPasses is how many passes beyond the one pulled last are read ahead one
// by one: the frequencies of keys smooth a pass's reads well enough beyond.
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
		if t.readOnly && acquire(ctx, t.changing) == nil {
			// Nobody else makes room for the window of announced passes. Without it,
			// nothing is read ahead.
			_ = t.reserveNow(0)
			<-t.changing
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

// nextToPrefetch is the first announced pass with keys that were not looked at.
// The caller holds changing, without which no announcement is given up.
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

// roomToPrefetch reports whether the buckets of another step can be carried;
// without, each of its rows would cost a second read when it leaves.
func (t *ssd) roomToPrefetch() bool {
	t.carried.Lock()
	defer t.carried.Unlock()
	free := t.plan.carryBytes - t.carried.mapped + int64(len(t.carried.free))*carryChunkBytes
	return free >= t.plan.carryBytes/4 // nothing is carried of a table that is only read
}
