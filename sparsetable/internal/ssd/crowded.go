package ssd

import (
	"context"
	"errors"
	"sync/atomic"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/slots"
)

// The index takes memory from the cache as the table grows. The cache gives memory back in
// slabs, and a slab with a pinned row stays. While passes overlap, each slab may have one at any
// time: rows that every pass uses are never released. Without a measure against that, slots
// could not be split any more, so that buckets would grow, and with them what each row that is
// read or written costs, and filters would be full, so that each new key would cost a read, too.
//
// So where the index lacks memory for that reason, and there are too few slots by more than one
// part in crowdedShare, the table is crowded: a Pull of a patient caller (PullPatient) waits until
// no other set is pinned, and then the cache makes way for the slots that are missing and a
// quarter of all slots more. That happens once for each quarter by which a table grows.
const (
	crowdedShare = 8
	growthShare  = 4
)

// crowding is the memory that the index needs and pinned rows keep from it.
type crowding struct {
	crowded atomic.Bool
	// indexRoom is how many bytes the cache has made way for in advance, those that the index
	// takes by now included. Changed under rewrite.
	indexRoom atomic.Int64
	// calmRows is the number of rows from which on the table may be crowded again; under rewrite.
	calmRows int64
}

// indexBytes is the memory of the index, without the copies of pages that a snapshot makes.
// REQUIRES: rewrite or indexMu is held.
func (x *indexed) indexBytes() int64 { return x.index.Bytes() - x.index.CaptureBytes() }

// roomForSlots reports whether the index may grow by n slots: whether it then stays
// within its share of the memory and the cache can make room for it. missing is how many slots
// the table lacks in all. REQUIRES: rewrite is held.
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
		return false, nil // rows would leave the cache in vain
	}
	err := t.reserve(used + more - max(used, room))
	if errors.Is(err, errNoVictims) {
		// Buckets grow instead, for a while.
		t.crowded.Store(missing > int(t.index.Slots()/crowdedShare) && t.totalRows() >= t.calmRows)
		return false, nil
	}
	return err == nil, err
}

// waitsForRoom is asked before a Pull. Where the table is crowded, or pinned rows keep the cache
// from giving back memory that the process lacks, it returns ErrCrowded to a patient caller while
// other sets are pinned, and makes the room when there are none. REQUIRES: changing is held.
func (t *Table) waitsForRoom(ctx context.Context, creates, patient bool) error {
	makeRoom := t.makeIndexRoom
	if !creates || !t.crowded.Load() {
		if !t.cramped() {
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
		err = nil // it goes on with large buckets
	}
	t.wake() // slots can be split
	return err
}

// makeIndexRoom makes room for the slots that are missing, and some more. REQUIRES: rewrite
// is held, and no row is pinned. Errors: errUnpaid where it has to be called again.
func (t *Table) makeIndexRoom() error {
	rows := t.totalRows()
	more := t.index.GrowthBytes(t.slotsWanted(rows) + int(t.index.Slots()/growthShare))
	used, room := t.indexBytes(), t.indexRoom.Load()
	want := max(used, room, min(used+more, t.plan.IndexLimit()))
	err := t.reserve(want - max(used, room))
	if errors.Is(err, errUnpaid) {
		return err
	}
	if err == nil {
		t.indexRoom.Store(want)
	}
	t.crowded.Store(false)
	t.calmRows = rows + rows/growthShare
	return err
}
