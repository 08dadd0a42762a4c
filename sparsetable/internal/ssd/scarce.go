package ssd

import (
	"context"
	"sync/atomic"
	"time"

	"aibox/sparsetable/internal/rowcache"
)

// A budget says what the table may have, not what there is: the machine, or the control group of
// the process, may have less memory, and others take some of it. Linux kills a process that takes
// more. So now and then a Pull looks how much more memory the process should take. The cache may
// grow by half of that, or gives back what is missing; the budget shrinks by as much, and grows
// again as memory becomes free. What the table contains does not depend on that.

// scarcity is the part of the budget that the process cannot have at present.
type scarcity struct {
	lacking atomic.Int64 // bytes
	room    func() int64 // process.Room, but for tests
	// every is how long the table does not look again.
	every  time.Duration
	looked time.Time // the last time; under changing, as warned
	warned bool
}

const (
	// lookInterval is scarcity.every. A look takes some 0.2 ms.
	lookInterval = 100 * time.Millisecond
	// mostLoose bounds looseBytes.
	mostLoose = 64 << 20
)

// budgetBytes is what the table may have at present.
func (t *Table) budgetBytes() int64 { return t.opts.MemoryBytes - t.lacking.Load() }

// lackingWindow is the part of what is lacking by which the window of announced passes gets smaller.
func (t *Table) lackingWindow() int64 { return t.lacking.Load() / rowcache.WindowShare }

// heedMachine adapts the budget to what the process can have, if that was not done a moment ago.
// REQUIRES: changing is held.
func (t *Table) heedMachine(ctx context.Context) error {
	now := time.Now()
	if now.Sub(t.looked) < t.every {
		return nil
	}
	t.looked = now
	room := t.room()
	grow, loose := room, int64(0)
	if room >= 0 {
		grow = room / 2 // others grow before the next look, too
		loose = t.looseBytes()
	}
	has, lacking := t.heldBytes(), t.lacking.Load()
	may := t.budgetBytes() - has
	if full := room < 0 || lacking > 0 && may <= loose; full && !t.warned && t.opts.MemoryBytes-has > room {
		t.warned = true
		t.opts.Logger.Warn("sparsetable: the process cannot have as much memory as the table may take, so the cache of the table stays smaller; let the process have more, or the table less",
			"budget_bytes", t.opts.MemoryBytes, "held_bytes", has, "room_bytes", room)
	}
	if may <= grow+loose && (lacking == 0 || may >= grow/2) {
		return nil
	}
	return t.limitTo(ctx, has+grow)
}

// looseBytes is by how much the cache may differ from its limit because it grows and shrinks by slabs.
func (t *Table) looseBytes() int64 { return min(t.plan.SpareBytes, mostLoose) }

// cramped reports whether the cache has not been able to give back what the process lacks. The spare bytes do
// not count: it may take them while rows are pinned.
func (t *Table) cramped() bool {
	if t.lacking.Load() == 0 {
		return false
	}
	st := t.cache.Stats()
	return st.Bytes > st.MaxBytes+t.looseBytes()
}

// heldBytes is what the table has of its budget, without copies of buckets that it may make.
// Buffers count as if they were used.
func (t *Table) heldBytes() int64 {
	mapped, most := t.carried.Bytes()
	return t.takenBytes() + t.cache.Stats().Bytes - (most - mapped)
}

// takeMore gives the budget a bit more of what the process should take, since rows that are pinned need it,
// and reports whether there was that much. REQUIRES: changing is held.
func (t *Table) takeMore(ctx context.Context) (grew bool, err error) {
	more := min(t.plan.SpareBytes, t.lacking.Load())
	if more == 0 || t.heldBytes()+t.room() < t.budgetBytes()+more {
		return false, nil
	}
	return true, t.limitTo(ctx, t.budgetBytes()+more)
}

// limitTo makes the budget so small, or as large as it may be.
func (t *Table) limitTo(ctx context.Context, bytes int64) error {
	bytes = min(bytes, t.opts.MemoryBytes)
	t.carried.SetLimit(t.plan.CarryIn(bytes))
	bytes = max(bytes, min(t.takenBytes()+t.cache.LeastBytes(), t.opts.MemoryBytes))
	if lacking := t.opts.MemoryBytes - bytes; t.lacking.Swap(lacking) == lacking {
		return nil
	}
	err := t.reserveNow(ctx, 0)
	if cannotShrink(err) {
		err = nil // the cache shrinks as rows are released, see waitsForRoom
	}
	return err
}
