package sparsetable

import (
	"cmp"
	"context"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/plan"
)

// The elevator serves announced passes in the order in which buckets lie on the
// device, not in that of the passes (the out-of-order prefetch of BagPipe §3.2,
// by the rule that disks are served by). It goes through the bucket files, from the
// first to the last and then from the first again, and makes one round in as many
// passes as are announced. So between the announcement of a pass and its Pull it
// comes to every bucket that the pass needs. It stops
//
//   - where a bucket has a row that is not in the cache and that an announced
//     pass needs: the row goes into the cache and stays there until its pass;
//   - where rows of a slot are dirty that no announced pass needs and that are among
//     the first to leave: they are written with the rest of their bucket, which is at
//     hand, and with all other dirty rows of the slot that are not pinned.
//
// A Pull that has to read a bucket does the same with its rows, and removes the
// stop.
//
// Stops are marked slots of the index. Stops that are close together are read with
// one read, the bytes between them included. In a table of 20 million rows, with
// 100 passes of 27,600 keys announced of which a third are missing, 37 MB are read
// for a pass, in 2,700 reads, and a row takes three fifths of the time of a read of
// its own. Where stops are far apart, because the table is large compared with the
// announced passes, the elevator does not pay. Then passes are served one by one
// (ssd_direct.go), and the rows that leave the cache are written by means of the
// buckets that working sets carry (ssd_carry.go). The code calls a turn of the
// elevator a ride.
const (
	// A gap of up to rideGapBytes between two buckets is read, too, where that
	// saves a read: a read takes the devices measured 11 microseconds, a KiB 0.5 to
	// 1.
	rideGapBytes = 16 << 10
	// The elevator pays if it covers at most payingBytes of files for each row that
	// a pass lacks. A separate read takes as long as reading another 14 KiB in
	// sequence. Half of that is allowed for, because dead bytes between the
	// buckets, and stops for rows to be written, take time as well: with files that
	// were half dead, at 7.7 KiB a row, the elevator made p3 of bench/table take
	// half as long again.
	payingBytes = 7 << 10
	// A pass has one part in needWeight of the weight in the moving average of what
	// passes lack.
	needWeight = 8

	// rideStretches is the number of stretches in which a round is planned.
	rideStretches = 32
	// rideLead is by how many passes the elevator may be ahead of its schedule
	// while no Pull waits.
	rideLead = 2
	// rideBatch is how many stops are submitted at a time.
	rideBatch = 256
	// rideChunks is how many chunks of buckets the elevator collects before it
	// gives them to the background writer.
	rideChunks = 2
	// Where fewer passes are announced than before, each pass shortens the round by
	// one part in windowDecay.
	windowDecay = 32
)

// elevator is the state of the elevator. It belongs to the holder of changing.
type elevator struct {
	marking atomic.Bool  // the last result of marks; may be read without a lock
	marked  bool         // markDirty was called; used by the prefetcher alone
	need    atomic.Int64 // moving average of the rows in buckets that an announced pass lacks
	full    atomic.Bool  // the cache had no room for rows of announced passes; reset when the prefetcher is woken

	direct bool // it serves passes one by one, see ssd_direct.go
	schedule
	stretch
	rides
	takenRows
	carry *carry.Buckets
}

// schedule is where the elevator is, and where it should be.
type schedule struct {
	at     bucketfile.Location // where the next stretch begins
	due    int64               // bytes by which it is behind its schedule; negative: ahead
	pace   int64               // bytes of files to cover for each pass; 0: it does not pay
	window int                 // number of passes for one round
}

// stretch is the part of the way that is planned.
type stretch struct {
	stops   []stop        // in order
	next    int           // the first of them that was not submitted
	perStop int64         // bytes of the stretch for each stop
	aim     *announcement // the pass that the stops are for; nil: they are those of a stretch
}

// rides are the reads of the elevator.
type rides struct {
	queue *bucketfile.Queue
	limit int64 // most bytes of reads in flight
	most  int64 // most bytes of one read

	idle   []*rideRequest
	submit []*bucketfile.Request
	done   []*bucketfile.Request
	onWay  map[uint32]struct{} // slots whose buckets are being read; none is read twice at a time

	// The queue's counters when they were last added to the statistics.
	reads, bytes uint64
}

// takenRows is scratch memory for the rows that are taken into the cache.
type takenRows struct {
	keys   []uint64
	hashes []uint64
	wanted []bool
	from   []*bucketfile.Request // the request that each key of the batch comes from
	passes []int64               // the pass that each key of the batch is for; -1: none
	refs   []uint32
	taken  int64 // rows taken into the cache that the statistics do not have yet
}

// stop is a bucket that is to be read.
type stop struct {
	loc  bucketfile.Location
	slot uint32
	key  uint64 // the key that the pass lacks; 0 in a stretch
}

// byPlace orders stops as they lie on the device.
func byPlace(a, b stop) int { return cmp.Compare(a.loc, b.loc) }

// rideRequest is the request that reads a stop.
type rideRequest struct {
	request bucketfile.Request
	keys    []uint64 // the keys that aim lacks
	aim     *announcement
}

func (t *ssd) startElevator() {
	e := &t.elevator
	if t.plan.RideBytes == 0 {
		return
	}
	e.queue = t.files.NewQueue()
	e.direct = true
	e.limit = t.plan.RideBytes / 2
	e.most = e.limit / 4
	e.queue.MergeWithin(rideGapBytes, e.most)
	e.stops = make([]stop, 0, t.plan.RideStops)
	e.onWay = map[uint32]struct{}{}
}

// stopElevator waits for its reads. REQUIRES: no other goroutine uses the table.
func (t *ssd) stopElevator() {
	if t.elevator.queue != nil {
		t.elevator.stops, t.elevator.next = nil, 0
		t.drainElevator()
		t.dropCarry(t.elevator.carry)
	}
}

// noteNeed records that a pass that was announced lacks that many rows.
func (e *elevator) noteNeed(rows int) {
	mean := e.need.Load()
	if mean == 0 {
		mean = int64(rows)
	}
	e.need.Store(mean + (int64(rows)-mean)/needWeight)
}

// setPace determines how far the elevator has to go for each pass, and whether it
// pays.
func (t *ssd) setPace() {
	e := &t.elevator
	e.window = max(t.announced.number(), e.window-e.window/windowDecay, 1)
	e.pace, e.direct = 0, true
	if !t.marks() {
		return
	}
	if pace := wayRound(t.files.LiveFiles()) / int64(e.window); pace <= e.need.Load()*payingBytes {
		e.pace, e.direct = pace, false
	}
}

// rideForPull is called by the Pull of an announced pass: it moves the elevator to
// where it should be by now. Errors are not returned; the Pulls that need the rows
// meet them. REQUIRES: changing is held.
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

// rideAhead is a turn of the elevator while no Pull waits. It returns false if the
// elevator is far enough ahead.
func (t *ssd) rideAhead(ctx context.Context) bool {
	e := &t.elevator
	if !e.marked && e.marking.Load() {
		e.marked = true
		t.markDirty()
	}
	if e.queue == nil || t.waitingPulls.Load() > 0 || t.changing.Acquire(ctx) != nil {
		return false
	}
	defer t.changing.Release()
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

// roomToSubmit reports whether more reads may be submitted. The limit on bytes does
// not count reads that wait for buffers, so their number is limited, too.
func (e *elevator) roomToSubmit() bool {
	return e.queue.HeldBytes() < e.limit && e.queue.Pending() < cap(e.stops)/plan.StopsPerRide
}

// ride is one turn of the elevator: it starts some reads and makes use of others
// that have ended. It returns false if there are no stops. REQUIRES: changing is
// held.
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
