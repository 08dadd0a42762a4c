package elevator

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/carry"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/outside"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

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
	// one part in windowDecay, and by one pass at least.
	windowDecay = 32
)

// Table is what the elevator needs of the table.
type Table interface {
	// TakeAhead puts the rows into the cache, as far as there is room, as rows that are in
	// their buckets, and sets their references, which are pinned. The others stay 0.
	TakeAhead(ctx context.Context, rows *rowcache.Incoming, refs []uint32)
	// HandOver gives buckets to whoever writes dirty rows into them.
	HandOver(c *carry.Buckets)
	// FitRows is how many rows the cache holds.
	FitRows() int64
}

// Options say what an Elevator works on.
type Options struct {
	Table   Table
	Files   *bucketfile.Set
	Index   *slots.Index
	IndexMu *sync.RWMutex // guards Index
	Cache   *rowcache.Cache
	Outside *outside.Index // rows that are in no bucket, or in one as an older version; nil: there are none
	Carried *carry.Memory
	Hash    slots.Hasher // of keys
	Layout  layout.Layout
	// Incoming is scratch memory for rows that come into the cache, which belongs to the
	// holder of changing.
	Incoming *rowcache.Incoming

	Bytes    int64 // of memory for reads; 0: nothing is read ahead
	Stops    int   // most stops in a stretch
	ReadOnly bool  // no row will be written
}

// Elevator reads ahead for one table.
type Elevator struct {
	Options
	announcing announcing
	passes     passes
	wake       chan struct{} // wakes the prefetcher

	marking atomic.Bool  // the last result of marks
	marked  bool         // MarkOnce has marked; used by the prefetcher alone
	need    atomic.Int64 // moving average of the rows in buckets that an announced pass lacks
	full    atomic.Bool  // the cache had no room for rows of announced passes; reset when the prefetcher is woken

	direct bool // it serves passes one by one, see direct.go
	schedule
	stretch
	rides
	takenRows
	carry  *carry.Buckets
	counts counts
}

// Counts is what was read since the table was opened.
type Counts struct {
	Buckets, DeviceReads, Bytes int64
	Rows                        int64 // that came into the cache
}

type counts struct{ buckets, reads, bytes, rows atomic.Int64 }

// Counts returns the counters. It may be called by anybody.
func (e *Elevator) Counts() Counts {
	c := &e.counts
	return Counts{Buckets: c.buckets.Load(), DeviceReads: c.reads.Load(), Bytes: c.bytes.Load(), Rows: c.rows.Load()}
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
}

// takenRows is scratch memory for the rows that are taken into the cache.
type takenRows struct {
	keys     []uint64
	hashes   []uint64
	wanted   []bool
	seen     map[bucketfile.Location]struct{} // the buckets of the batch
	from     []*bucketfile.Request            // the request that each key of the batch comes from
	passesOf []int64                          // the pass that each key of the batch is for; -1: none
	refs     []uint32
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

// New makes the Elevator of a table.
func New(o Options) *Elevator {
	e := &Elevator{Options: o, wake: make(chan struct{}, 1), direct: o.Bytes > 0}
	e.queue = e.Files.NewQueue()
	e.limit = e.Bytes / 2
	e.most = e.limit / 4
	e.queue.MergeWithin(rideGapBytes, e.most)
	e.stops = make([]stop, 0, e.Stops)
	e.onWay, e.seen = map[uint32]struct{}{}, map[bucketfile.Location]struct{}{}
	return e
}

// Close waits for the reads in flight. No other goroutine may use the table.
func (e *Elevator) Close() {
	e.dropAll()
	for e.queue.Pending() > 0 {
		e.done = e.queue.Wait(e.done[:0], e.queue.Pending())
		e.queue.Finish(e.done)
	}
	e.Drop(e.carry)
}

// Wake makes the prefetcher look for work. It may be called by anybody.
func (e *Elevator) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Woken is where the prefetcher waits for work.
func (e *Elevator) Woken() <-chan struct{} { return e.wake }

// noteNeed records that a pass that was announced lacks that many rows.
func (e *Elevator) noteNeed(rows int) {
	mean := e.need.Load()
	if mean == 0 {
		mean = int64(rows)
	}
	e.need.Store(mean + (int64(rows)-mean)/needWeight)
}

// setPace determines how far the elevator has to go for each pass, and whether it
// pays.
func (e *Elevator) setPace() {
	e.window = max(e.passes.number(), e.window-(e.window+windowDecay-1)/windowDecay, 1)
	e.pace = 0
	if e.marks() {
		e.pace = payingPace(wayRound(e.Files.LiveFiles()), e.window, e.need.Load())
	}
	e.direct = e.pace == 0
}

// payingPace is how many bytes of a round the elevator covers for each of that many passes, of
// which each lacks need rows; 0: that does not pay.
func payingPace(round int64, passes int, need int64) int64 {
	if pace := round / int64(passes); pace <= need*payingBytes {
		return pace
	}
	return 0
}

// ForPull is called by the Pull of an announced pass: it moves the elevator to
// where it should be by now. Errors are not returned; the Pulls that need the rows
// meet them.
func (e *Elevator) ForPull(ctx context.Context) {
	e.full.Store(false)
	e.setPace()
	e.chooseStops()
	if e.pace == 0 {
		e.due = 0
		return
	}
	e.due = min(e.due+e.pace, 2*e.pace)
	for e.due > 0 && ctx.Err() == nil && e.ride(ctx) {
	}
}

// Begin is called by the prefetcher when it was woken. The lock need not be held.
func (e *Elevator) Begin() { e.full.Store(false) }

// MarkOnce is called by the prefetcher before a turn. It marks the slots of the rows that became
// dirty before slots were marked. The lock need not be held.
func (e *Elevator) MarkOnce() {
	if !e.marked && e.marking.Load() {
		e.marked = true
		e.markDirty()
	}
}

// Ahead is a turn of the elevator while no Pull waits. It returns false if the
// elevator is far enough ahead.
func (e *Elevator) Ahead(ctx context.Context) bool {
	if e.direct {
		return e.directAhead(ctx)
	}
	if e.due > -rideLead*e.pace && e.ride(ctx) {
		return true
	}
	e.alight(ctx, true)
	e.handRide(0)
	return false
}

// roomToSubmit reports whether more reads may be submitted. The limit on bytes does
// not count reads that wait for buffers, so their number is limited, too.
func (e *Elevator) roomToSubmit() bool {
	return e.queue.HeldBytes() < e.limit && e.queue.Pending() < cap(e.stops)/plan.StopsPerRide
}

// ride is one turn of the elevator: it starts some reads and makes use of others
// that have ended. It returns false if there are no stops.
func (e *Elevator) ride(ctx context.Context) bool {
	if e.next == len(e.stops) && !e.planStretch() {
		on := e.queue.Pending() > 0
		e.alight(ctx, true)
		e.handRide(rideChunks)
		return on
	}
	for e.next < len(e.stops) && e.roomToSubmit() {
		e.submitStops()
	}
	e.alight(ctx, false)
	e.handRide(rideChunks)
	return true
}
