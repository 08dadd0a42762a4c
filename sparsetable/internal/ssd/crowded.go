package ssd

import (
	"context"
	"errors"
	"sync/atomic"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/slots"
)

// The index takes memory from the cache as the table grows. The cache gives memory back in slabs,
// and a slab with a pinned row stays. While passes overlap, every slab may have a pinned row at any
// time, because rows that every pass uses are never released. If nothing were done, slots could not
// be split any more. Buckets would grow, and with them the cost of each row that is read or
// written; and filters would fill up, so that each new key would cost a read, too.
//
// So the table is crowded when pinned rows keep memory from the index and the missing slots are
// more than 1/crowdedShare of all slots. Then a Pull of a patient caller (PullPatient) waits until
// no other set is pinned, and the cache makes room for the missing slots and for another
// 1/growthShare of all slots. That happens once each time the table has grown by a quarter.
const (
	crowdedShare = 8
	growthShare  = 4
)

// crowding describes the memory that the index needs and that pinned rows keep from it.
type crowding struct {
	crowded atomic.Bool
	// indexRoom is the size in bytes up to which the cache has made room for the index, including
	// what the index takes by now. Changed under rewrite.
	indexRoom atomic.Int64
	// calmRows is the number of rows from which the table may be crowded again. Guarded by rewrite.
	calmRows int64
}

// indexBytes is the memory of the index, without the copies of pages that a snapshot makes.
// REQUIRES: rewrite or indexMu is held.
func (x *indexed) indexBytes() int64 { return x.index.Bytes() - x.index.CaptureBytes() }

// roomForSlots reports whether the index may grow by n slots, that is, whether it then stays within
// its share of the memory and the cache can make room for it. missing is how many slots the table
// lacks in all. REQUIRES: rewrite is held.
func (t *Table) roomForSlots(n, missing int) (bool, error) {
	more := t.index.GrowthBytes(n)
	if more <= 0 {
		return true, nil
	}
	if int64(t.index.Slots())+int64(n) > slots.SlotsIn(t.plan.IndexLimit(), 0) {
		return false, nil
	}
	used, room := t.indexBytes(), t.indexRoom.Load()
	if used+more <= room {
		return true, nil
	}
	if t.crowded.Load() && t.sets.number() > 0 {
		return false, nil // evicting rows would free no memory
	}
	err := t.reserve(used + more - max(used, room))
	if errors.Is(err, errNoVictims) {
		// Buckets grow instead for now.
		t.crowded.Store(missing > int(t.index.Slots()/crowdedShare) && t.totalRows() >= t.calmRows)
		return false, nil
	}
	return err == nil, err
}

// waitsForRoom is called before a Pull. It acts if the table is crowded, or if pinned rows keep the
// cache from giving back memory that the process lacks. While other sets are pinned, it returns
// ErrCrowded to a patient caller; otherwise it makes the room. REQUIRES: changing is held.
func (t *Table) waitsForRoom(ctx context.Context, creates, patient bool) error {
	makeRoom := t.makeIndexRoom
	if !creates || !t.crowded.Load() {
		if !t.overLimit() {
			return nil
		}
		makeRoom = func() error { return t.reserve(0) }
	}
	if t.sets.number() > 0 {
		if patient {
			return contract.ErrCrowded
		}
		return nil
	}
	err := t.inSteps(ctx, makeRoom)
	if cannotShrink(err) {
		err = nil // the table continues with large buckets
	}
	t.wake() // slots can be split
	return err
}

// makeIndexRoom makes room for the missing slots and some more. REQUIRES: rewrite is held, and no
// row is pinned. It returns errSpaceUnchecked if it has to be called again.
func (t *Table) makeIndexRoom() error {
	rows := t.totalRows()
	more := t.index.GrowthBytes(t.slotsWanted(rows) + int(t.index.Slots()/growthShare))
	used, room := t.indexBytes(), t.indexRoom.Load()
	want := max(used, room, min(used+more, t.plan.IndexLimit()))
	err := t.reserve(want - max(used, room))
	if errors.Is(err, errSpaceUnchecked) {
		return err
	}
	if err == nil {
		t.indexRoom.Store(want)
	}
	t.crowded.Store(false)
	t.calmRows = rows + rows/growthShare
	return err
}
