package ssd

import (
	"context"
	"sync/atomic"
	"time"

	"aibox/sparsetable/internal/rowcache"
)

// The budget says what the table may have, not what is available: the machine, or the control group
// of the process, may have less memory, and other processes take some of it. Linux kills a process
// that takes more than there is. So a Pull checks now and then how much more memory the process
// should take. The cache may grow by half of that, or gives back what is missing. The budget
// shrinks by the same amount, and grows again as memory becomes free. The contents of the table do
// not depend on that.

// scarcity is the part of the budget that the process cannot have at present.
type scarcity struct {
	lacking atomic.Int64 // bytes
	room    func() int64 // process.Room, except in tests
	// every is the interval between two checks.
	every     time.Duration
	checkedAt time.Time // time of the last check; under changing, like warned
	warned    bool
}

const (
	// checkInterval is the default of scarcity.every. A check takes some 0.2 ms.
	checkInterval = 100 * time.Millisecond
	// maxTolerance bounds toleranceBytes.
	maxTolerance = 64 << 20
)

// budgetBytes is the budget at present.
func (t *Table) budgetBytes() int64 { return t.opts.MemoryBytes - t.lacking.Load() }

// lackingWindow is the window's part of the lacking memory.
func (t *Table) lackingWindow() int64 { return t.lacking.Load() / rowcache.WindowShare }

// adaptBudget adapts the budget to what the process can have, unless it did so a moment ago.
// REQUIRES: changing is held.
func (t *Table) adaptBudget(ctx context.Context) error {
	now := time.Now()
	if now.Sub(t.checkedAt) < t.every {
		return nil
	}
	t.checkedAt = now
	room := t.room()
	grow, tolerance := room, int64(0)
	if room >= 0 {
		grow = room / 2 // other processes grow before the next check, too
		tolerance = t.toleranceBytes()
	}
	has, lacking := t.heldBytes(), t.lacking.Load()
	may := t.budgetBytes() - has
	if full := room < 0 || lacking > 0 && may <= tolerance; full && !t.warned && t.opts.MemoryBytes-has > room {
		t.warned = true
		t.opts.Logger.Warn("sparsetable: the process cannot get all the memory of the table's budget, so the table's cache stays smaller; give the process more memory, or the table a smaller budget",
			"budget_bytes", t.opts.MemoryBytes, "held_bytes", has, "room_bytes", room)
	}
	if may <= grow+tolerance && (lacking == 0 || may >= grow/2) {
		return nil
	}
	return t.limitTo(ctx, has+grow)
}

// toleranceBytes is how far the cache may be off its limit because it grows and shrinks by slabs.
func (t *Table) toleranceBytes() int64 { return min(t.plan.SpareBytes, maxTolerance) }

// overLimit reports whether the cache could not give back what the process lacks. The spare bytes do
// not count: the cache may take them while rows are pinned.
func (t *Table) overLimit() bool {
	if t.lacking.Load() == 0 {
		return false
	}
	st := t.cache.Stats()
	return st.Bytes > st.MaxBytes+t.toleranceBytes()
}

// heldBytes is the part of the budget that the table holds, without the copies of buckets that it
// has yet to make. Buffers count as used.
func (t *Table) heldBytes() int64 {
	mapped, most := t.carried.Bytes()
	return t.takenBytes() + t.cache.Stats().Bytes - (most - mapped)
}

// takeMore enlarges the budget a little because pinned rows need it, if the process can have that
// much, and reports whether it did. REQUIRES: changing is held.
func (t *Table) takeMore(ctx context.Context) (grew bool, err error) {
	more := min(t.plan.SpareBytes, t.lacking.Load())
	if more == 0 || t.heldBytes()+t.room() < t.budgetBytes()+more {
		return false, nil
	}
	return true, t.limitTo(ctx, t.budgetBytes()+more)
}

// limitTo sets the budget to bytes, within its maximum and the minimum that the table needs.
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
