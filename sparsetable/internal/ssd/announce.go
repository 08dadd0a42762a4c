package ssd

import (
	"context"
	"log/slog"

	"aibox/internal/panics"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/elevator"
	"aibox/sparsetable/internal/rowcache"
)

// Announce implements Table.
func (t *Table) Announce(keys []uint64) {
	if t.opts.CachePolicy != policyLookahead || len(keys) == 0 || t.inFlight.Begin() != nil {
		return
	}
	defer t.inFlight.End()
	if pass, err := t.elevator.Announce(keys); err != nil {
		t.opts.Logger.Warn("sparsetable: a pass could not be announced, so its rows are not read ahead", slog.Int64("pass", pass), slog.Any("error", err))
	}
}

// Lookahead implements Table.
func (t *Table) Lookahead(keys int) (passes int) {
	if t.opts.CachePolicy != policyLookahead || t.inFlight.Begin() != nil {
		return 0
	}
	defer t.inFlight.End()
	passes, err := t.cache.Lookahead(keys)
	if err != nil {
		t.opts.Logger.Warn("sparsetable: the number of passes to look ahead could not be determined", slog.Int("keys", keys), slog.Any("error", err))
	}
	return min(passes, elevator.MaxPasses-1) // the list takes the pass to be pulled next as well
}

// ForgetAnnounced implements Table.
func (t *Table) ForgetAnnounced() {
	if t.opts.CachePolicy != policyLookahead || t.inFlight.Begin() != nil {
		return
	}
	defer t.inFlight.End()
	t.elevator.Withdraw(t.changing)
	t.elevator.Wake() // it may have paused because of the announced passes
	t.wakeIfFull()    // rows that the passes needed may leave now
}

// prefetchLoop is the goroutine that reads ahead.
func (t *Table) prefetchLoop(ctx context.Context) {
	defer panics.Exit("reading ahead in the table")
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.elevator.Woken():
		}
		t.elevator.Begin()
		if t.opts.ReadOnly && t.changing.Acquire(ctx) == nil {
			// In a table opened for reading, nothing else makes room for the window of announced
			// passes. If there is no room, nothing is read ahead.
			_ = t.reserveNow(ctx, 0)
			t.changing.Release()
		}
		for t.readAhead(ctx) {
		}
	}
}

// readAhead does one turn of the elevator unless a Pull waits. It returns false if there is nothing
// to do.
func (t *Table) readAhead(ctx context.Context) bool {
	t.elevator.MarkOnce()
	if t.waitingPulls.Load() > 0 || t.changing.Acquire(ctx) != nil {
		return false
	}
	defer t.changing.Release()
	return t.elevator.Ahead(ctx)
}

// elevatorTable is the elevator's view of the table; it implements elevator.Table.
type elevatorTable struct{ *Table }

// InsertAhead implements elevator.Table.
func (t elevatorTable) InsertAhead(ctx context.Context, rows *rowcache.Incoming, refs []uint32) {
	t.pull.prefetching = true
	defer func() { t.pull.prefetching = false }()
	// If there is no room, the Pulls of the passes read the remaining rows.
	_ = t.insert(ctx, rows, refs, true)
}

// HandOver implements elevator.Table.
func (t elevatorTable) HandOver(c *carry.Buckets) { t.handOver(c) }

// FitRows implements elevator.Table.
func (t elevatorTable) FitRows() int64 { return t.fitRows.Load() }
