package sparsetable

import (
	"cmp"
	"context"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// The elevator serves announced passes in the order in which buckets lie on the
// device, not in that of the passes (the out-of-order prefetch of BagPipe §3.2,
// by the rule that disks are served by). It goes round the bucket files, from
// the first to the last and then from the first again, and makes one round in as
// many passes as are announced: so it comes past every bucket that a pass needs
// between the pass's announcement and its Pull. It stops
//
//   - where a bucket has a row that is not in the cache and that an announced
//     pass needs: the row goes into the cache and stays there until its pass;
//   - where rows of a slot are dirty that no announced pass needs: they are
//     written with the rest of their bucket, which is at hand.
//
// A Pull that has to read a bucket does the same with it, and takes the stop away.
//
// Stops are marked slots of the index. Between stops that are close together the
// device reads on. In a table of 20 million rows and with 100 passes of 27,600
// keys announced, a third of them missing, 37 MB are read for a pass, in 2,700
// reads, and a row comes in three fifths of the time that a read of its own
// takes. Where stops are far apart, because the table is large against the
// window, it does not pay, and passes are served one by one (ssd_direct.go), the
// rows that leave being written by way of what working sets carry (ssd_carry.go).
const (
	// rideShare is the part of the budget that its reads may take. Half of it is
	// on its way, 40 reads and more of 100 KiB in 256 MiB, and half of that is
	// submitted at a time; buffers are rounded up by a third at most.
	rideShare    = 32
	maxRideBytes = 16 << 20
	// One stop is planned at a time for so many bytes of that.
	rideBytesPerStop = 512
	// Requests on their way take some 370 bytes each: themselves, their keys, their
	// group and a place among slots.
	stopsPerRide = 4 // there are so many times fewer of them than stops
	stopBytes    = 24 + 370/stopsPerRide

	// rideGapBytes is read along where it saves a read, for which devices take
	// 11 microseconds here, and 0.5 to 1 for a KiB.
	rideGapBytes = 16 << 10
	// payingBytes is how far it may go for each row that a pass lacks. A read of its
	// own takes as long as reading 14 KiB on; what is dead between the buckets, and
	// stops for rows to be written, take the other half: on files that are half dead,
	// at 7.7 KiB a row, the elevator made p3 of bench/table slower by half.
	payingBytes = 7 << 10
	// needWeight is the weight of a pass in the mean of what passes lack, one in
	// so many.
	needWeight = 8

	// rideStretches is how many stretches a round is planned in.
	rideStretches = 32
	// rideLead is how many passes' way the elevator goes ahead while no Pull
	// waits.
	rideLead = 2
	// rideBatch is how many stops are submitted at a time.
	rideBatch = 256
	// rideChunks are the chunks of buckets that it keeps before it gives them to
	// the writer.
	rideChunks = 2
	// windowDecay: where fewer passes are announced than before, the round gets
	// shorter by one part in so many with each.
	windowDecay = 32
)

// elevator is where it is, and what it works with. Whoever holds changing owns
// it.
type elevator struct {
	marking atomic.Bool  // what marks said last; anybody may ask
	marked  bool         // dirty rows of before that; the prefetcher's own
	need    atomic.Int64 // rows in buckets that an announced pass lacks, in the mean

	queue *bucketfile.Queue
	limit int64 // bytes of reads on their way
	most  int64 // bytes of one read

	at      bucketfile.Location // where the next stretch begins
	stops   []stop              // of the stretch at hand, in order
	next    int                 // the first of them that is not on its way
	perStop int64               // bytes of the stretch for each stop
	due     int64               // bytes that it is late; below 0: ahead
	pace    int64               // way for one pass, in bytes; 0: it does not pay
	window  int                 // passes in which it goes round
	direct  bool                // it serves pass by pass, see ssd_direct.go
	full    atomic.Bool         // rows for passes to come found no room; until the prefetcher is woken
	aim     *announcement       // whose rows stops are for; nil: a stretch's

	idle   []*rideRequest
	submit []*bucketfile.Request
	done   []*bucketfile.Request
	onWay  map[uint32]struct{} // slots; none is on its way twice
	keys   []uint64
	hashes []uint64
	wanted []bool
	from   []*bucketfile.Request // of each key of the batch
	passes []int64               // that wait for each key of the batch; -1: none
	refs   []uint32
	carry  *carry

	// What the statistics have.
	reads, bytes uint64
	taken        int64 // rows that it does not have yet
}

// stop is a bucket to be read.
type stop struct {
	loc  bucketfile.Location
	slot uint32
	key  uint64 // that aim lacks; 0 of a stretch
}

// byPlace orders stops as they lie on the device.
func byPlace(a, b stop) int { return cmp.Compare(a.loc, b.loc) }

// rideRequest is a stop on its way.
type rideRequest struct {
	request bucketfile.Request
	keys    []uint64 // that aim lacks
	aim     *announcement
}

func (t *ssd) startElevator() {
	e := &t.elevator
	if t.plan.rideBytes == 0 {
		return
	}
	e.queue = t.files.NewQueue()
	e.direct = true
	e.limit = t.plan.rideBytes / 2
	e.most = e.limit / 4
	e.queue.MergeWithin(rideGapBytes, e.most)
	e.stops = make([]stop, 0, t.plan.rideStops)
	e.onWay = map[uint32]struct{}{}
}

// stopElevator ends its reads. Nobody else is at work on the table.
func (t *ssd) stopElevator() {
	if t.elevator.queue != nil {
		t.elevator.stops, t.elevator.next = nil, 0
		t.drainElevator()
		t.dropCarry(t.elevator.carry)
	}
}

// marks reports whether rows have to leave for others, so that the elevator may
// be of use, and notes it.
func (t *ssd) marks() bool {
	e := &t.elevator
	if e.queue == nil || t.readOnly {
		return false
	}
	space, _ := t.files.Space()
	on := space.LiveBytes > t.fitRows.Load()/4*3*int64(entryBytes(t.layout)) && t.cache.NotesMissing()
	e.marking.Store(on)
	return on
}

// noteNeed notes that a pass that was announced lacks so many rows.
func (e *elevator) noteNeed(rows int) {
	mean := e.need.Load()
	if mean == 0 {
		mean = int64(rows)
	}
	e.need.Store(mean + (int64(rows)-mean)/needWeight)
}

// markBuckets marks the slots whose buckets may have the keys of hashes, and
// returns the number of those keys.
func (t *ssd) markBuckets(hashes []uint64) (found int) {
	const chunk = 1024
	var in [chunk]uint32
	var locations [chunk]uint64
	for len(hashes) > 0 {
		n := min(len(hashes), chunk)
		t.indexMu.RLock()
		t.index.Lookup(hashes[:n], in[:n], locations[:n])
		for i, slot := range in[:n] {
			if locations[i] != 0 {
				t.index.Mark(slot)
				found++
			}
		}
		t.indexMu.RUnlock()
		hashes = hashes[n:]
	}
	return found
}

// markLater leaves what a released set refers to for the next Pull to mark: the
// trainer is not to wait for that.
func (t *ssd) markLater(refs []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.released = append(t.mu.released, refs)
}

// markReleased marks for the sets that were released since the last Pull, and
// takes their references back.
func (t *ssd) markReleased() {
	for {
		t.mu.Lock()
		last := len(t.mu.released) - 1
		if last < 0 {
			t.mu.Unlock()
			return
		}
		refs := t.mu.released[last]
		t.mu.released = t.mu.released[:last]
		t.mu.Unlock()
		t.markLeaving(refs)
		t.giveRefs(refs)
	}
}

// markLeaving marks the slots of those rows of a released set that have to leave.
func (t *ssd) markLeaving(refs []uint32) {
	const chunk = 1024
	var hashes [chunk]uint64
	for len(refs) > 0 {
		n := min(len(refs), chunk)
		leaving := hashes[:0]
		t.cache.VisitIdle(refs[:n], func(e rowcache.Entry) {
			if e.Flags&(rowcache.Dirty|rowStored) == rowcache.Dirty|rowStored && !e.Needed {
				leaving = append(leaving, slots.Hash(e.Key))
			}
		})
		t.markBuckets(leaving)
		refs = refs[n:]
	}
}

// setPace finds out how far the elevator is to go for each pass.
func (t *ssd) setPace() {
	e := &t.elevator
	t.mu.Lock()
	e.window = max(len(t.mu.announced), e.window-e.window/windowDecay, 1)
	t.mu.Unlock()
	e.pace, e.direct = 0, true
	if !t.marks() {
		return
	}
	if pace := wayRound(t.files.LiveFiles()) / int64(e.window); pace <= e.need.Load()*payingBytes {
		e.pace, e.direct = pace, false
	}
}

// rideForPull is called by the Pull of an announced pass: it lets the elevator
// come as far as it should be by now. Errors are left to those who need the
// rows. REQUIRES: changing is held.
func (t *ssd) rideForPull(ctx context.Context) {
	e := &t.elevator
	if e.queue == nil {
		return
	}
	e.full.Store(false)
	t.setPace()
	t.chooseStops()
	if e.pace == 0 {
		e.due = 0
		return
	}
	e.due = min(e.due+e.pace, 2*e.pace)
	for e.due > 0 && ctx.Err() == nil && t.ride(ctx) {
	}
}

// markDirty marks the slots of all dirty rows in memory that will have to leave:
// those that were there before anybody marked.
func (t *ssd) markDirty() {
	const chunk = 1024
	hashes := make([]uint64, 0, chunk)
	next, end := uint32(0), false
	for !end {
		hashes = hashes[:0]
		next, end = t.cache.VisitFrom(next, rowcache.Pick{Has: rowcache.Dirty | rowStored, Idle: true}, chunk, func(e rowcache.Entry) rowcache.Change {
			if !e.Needed {
				hashes = append(hashes, slots.Hash(e.Key))
			}
			return rowcache.Change{}
		})
		t.markBuckets(hashes)
	}
}

// rideAhead is a turn of the elevator while no Pull waits. It returns false if
// it is far enough.
func (t *ssd) rideAhead(ctx context.Context) bool {
	e := &t.elevator
	if !e.marked && e.marking.Load() {
		e.marked = true
		t.markDirty()
	}
	if e.queue == nil || t.waitingPulls.Load() > 0 || acquire(ctx, t.changing) != nil {
		return false
	}
	defer func() { <-t.changing }()
	if e.direct {
		return t.directAhead(ctx)
	}
	if e.due > -rideLead*e.pace && t.ride(ctx) {
		return true
	}
	t.alight(ctx, true)
	t.handRide(0)
	return false
}

// roomToSubmit reports whether more reads may be on their way. Those that wait for
// buffers are not among the bytes.
func (e *elevator) roomToSubmit() bool {
	return e.queue.HeldBytes() < e.limit && e.queue.Pending() < cap(e.stops)/stopsPerRide
}

// ride is one turn: some reads are started, others have ended. It returns false
// if there is nowhere to stop. REQUIRES: changing is held.
func (t *ssd) ride(ctx context.Context) bool {
	e := &t.elevator
	if e.next == len(e.stops) && !t.planStretch() {
		on := e.queue.Pending() > 0
		t.alight(ctx, true)
		t.handRide(rideChunks)
		return on
	}
	for e.next < len(e.stops) && e.roomToSubmit() {
		t.submitStops()
	}
	t.alight(ctx, false)
	t.handRide(rideChunks)
	return true
}
