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
	// A gap of up to gapBytes between two buckets is read as well if that saves a read. On the
	// devices measured, a read takes 11 microseconds, and a KiB 0.5 to 1.
	gapBytes = 16 << 10
	// The elevator pays if it covers at most payingBytes of files for each row that a pass lacks. A
	// separate read takes as long as reading another 14 KiB in sequence. Half of that is allowed,
	// because dead bytes between the buckets, and stops for rows to be written, take time as well:
	// with half-dead files, at 7.7 KiB a row, the elevator made the run p3 of bench/table take half
	// as long again.
	payingBytes = 7 << 10
	// In the moving average of what passes lack, a pass has the weight 1/needWeight.
	needWeight = 8

	// stretchesPerRound is the number of stretches in which a round is planned.
	stretchesPerRound = 32
	// maxLead is by how many passes the elevator may be ahead of its schedule while no Pull waits.
	maxLead = 2
	// submitBatch is the number of stops submitted at a time.
	submitBatch = 256
	// handOverChunks is the number of chunks of buckets that the elevator collects before it passes
	// them to the background writer.
	handOverChunks = 2
	// If fewer passes are announced than before, each pass shortens the round by 1/windowDecay, and
	// by one pass at least.
	windowDecay = 32
)

// Table is the elevator's view of the table.
type Table interface {
	// InsertAhead puts rows that their buckets have into the cache, as far as there is room, and sets
	// their references, which are pinned. The other references stay 0.
	InsertAhead(ctx context.Context, rows *rowcache.Incoming, refs []uint32)
	// HandOver passes buckets to the goroutine that writes dirty rows into them.
	HandOver(c *carry.Buckets)
	// FitRows is the number of rows that the cache can hold.
	FitRows() int64
}

// Options say what an Elevator works on.
type Options struct {
	Table   Table
	Files   *bucketfile.Set
	Index   *slots.Index
	IndexMu *sync.RWMutex // guards Index
	Cache   *rowcache.Cache
	Outside *outside.Index // rows that are in no bucket, or whose bucket has an older version; nil: there are none
	Carried *carry.Memory
	Hash    slots.Hasher // of keys
	Layout  layout.Layout
	// Incoming is scratch memory for rows to be inserted into the cache. It belongs to the holder
	// of changing.
	Incoming *rowcache.Incoming

	Bytes    int64 // memory for reads; 0: nothing is read ahead
	Stops    int   // maximum number of stops in a stretch
	ReadOnly bool  // no row will be written
}

// Elevator reads ahead for one table.
type Elevator struct {
	Options
	announcing announcing
	passes     passes
	wake       chan struct{} // wakes the prefetcher

	marking atomic.Bool  // the last result of marks
	marked  bool         // MarkOnce has marked; used by the prefetcher only
	need    atomic.Int64 // moving average of the rows in buckets that an announced pass lacks
	full    atomic.Bool  // the cache had no room for rows of announced passes; reset when the prefetcher is woken

	direct bool // passes are served one by one, see direct.go
	schedule
	stretch
	reads
	takenRows
	carry  *carry.Buckets
	counts counts
}

// Counts are counters of reads since the table was opened.
type Counts struct {
	Buckets, DeviceReads, Bytes int64
	Rows                        int64 // inserted into the cache
}

type counts struct{ buckets, reads, bytes, rows atomic.Int64 }

// Counts returns the counters. Any goroutine may call it.
func (e *Elevator) Counts() Counts {
	c := &e.counts
	return Counts{Buckets: c.buckets.Load(), DeviceReads: c.reads.Load(), Bytes: c.bytes.Load(), Rows: c.rows.Load()}
}

// schedule is the elevator's actual and due position.
type schedule struct {
	at     bucketfile.Location // start of the next stretch
	due    int64               // bytes by which it is behind its schedule; negative: ahead
	pace   int64               // bytes of files to cover for each pass; 0: it does not pay
	window int                 // number of passes for one round
}

// stretch is the part of the round that is planned.
type stretch struct {
	stops   []stop        // in order
	next    int           // the first stop not yet submitted
	perStop int64         // bytes of the stretch for each stop
	target  *announcement // the pass that the stops are for; nil: they are those of a stretch
}

// reads are the reads of the elevator.
type reads struct {
	queue *bucketfile.Queue
	limit int64 // maximum bytes of reads in flight
	most  int64 // maximum bytes of one read

	idle     []*stopRequest
	submit   []*bucketfile.Request
	done     []*bucketfile.Request
	inFlight map[uint32]struct{} // slots whose buckets are being read; none is read twice at the same time
}

// takenRows is scratch memory for rows that are put into the cache.
type takenRows struct {
	keys     []uint64
	hashes   []uint64
	wanted   []bool
	seen     map[bucketfile.Location]struct{} // buckets of the batch
	from     []*bucketfile.Request            // the request that each key of the batch comes from
	passesOf []int64                          // the pass that each key of the batch is for; -1: none
	refs     []uint32
}

// stop is a bucket to be read.
type stop struct {
	loc  bucketfile.Location
	slot uint32
	key  uint64 // the key that the pass lacks; 0 in a stretch
}

// byPlace orders stops by their places on the device.
func byPlace(a, b stop) int { return cmp.Compare(a.loc, b.loc) }

// stopRequest is the request that reads a stop.
type stopRequest struct {
	request bucketfile.Request
	keys    []uint64 // the keys that target lacks
	target  *announcement
}

// New makes the Elevator of a table.
func New(o Options) *Elevator {
	e := &Elevator{Options: o, wake: make(chan struct{}, 1), direct: o.Bytes > 0}
	e.queue = e.Files.NewQueue()
	e.limit = e.Bytes / 2
	e.most = e.limit / 4
	e.queue.MergeWithin(gapBytes, e.most)
	e.stops = make([]stop, 0, e.Stops)
	e.inFlight, e.seen = map[uint32]struct{}{}, map[bucketfile.Location]struct{}{}
	return e
}

// Close waits for the reads in flight. No other goroutine may use the elevator.
func (e *Elevator) Close() {
	e.dropAll()
	for e.queue.Pending() > 0 {
		e.done = e.queue.Wait(e.done[:0], e.queue.Pending())
		e.queue.Finish(e.done)
	}
	e.Drop(e.carry)
}

// Wake tells the prefetcher to look for work. Any goroutine may call it.
func (e *Elevator) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Woken is the channel on which the prefetcher waits for work.
func (e *Elevator) Woken() <-chan struct{} { return e.wake }

// recordNeed records that an announced pass lacks that many rows.
func (e *Elevator) recordNeed(rows int) {
	mean := e.need.Load()
	if mean == 0 {
		mean = int64(rows)
	}
	e.need.Store(mean + (int64(rows)-mean)/needWeight)
}

// setPace determines how far the elevator has to go per pass, and whether it pays.
func (e *Elevator) setPace() {
	e.window = max(e.passes.number(), e.window-(e.window+windowDecay-1)/windowDecay, 1)
	e.pace = 0
	if e.marks() {
		e.pace = payingPace(roundBytes(e.Files.LiveFiles()), e.window, e.need.Load())
	}
	e.direct = e.pace == 0
}

// payingPace is how many bytes of a round the elevator covers for each of passes passes, each of
// which lacks need rows; 0: that does not pay.
func payingPace(round int64, passes int, need int64) int64 {
	if pace := round / int64(passes); pace <= need*payingBytes {
		return pace
	}
	return 0
}

// ForPull is called by the Pull of an announced pass: it moves the elevator to where it should be
// by now. It does not return errors; the Pulls that need the rows encounter them.
func (e *Elevator) ForPull(ctx context.Context) {
	e.full.Store(false)
	e.setPace()
	e.dropStaleStops()
	if e.pace == 0 {
		e.due = 0
		return
	}
	e.due = min(e.due+e.pace, 2*e.pace)
	for e.due > 0 && ctx.Err() == nil && e.step(ctx) {
	}
}

// Begin is called by the prefetcher when it was woken. It needs no lock.
func (e *Elevator) Begin() { e.full.Store(false) }

// MarkOnce is called by the prefetcher before a turn. It marks the slots of the rows that became
// dirty before the elevator began to mark slots. It needs no lock.
func (e *Elevator) MarkOnce() {
	if !e.marked && e.marking.Load() {
		e.marked = true
		e.markDirty()
	}
}

// Ahead is a turn of the elevator while no Pull waits. It returns false if the elevator is far
// enough ahead.
func (e *Elevator) Ahead(ctx context.Context) bool {
	if e.direct {
		return e.directAhead(ctx)
	}
	if e.due > -maxLead*e.pace && e.step(ctx) {
		return true
	}
	e.collect(ctx, true)
	e.handOverCarried(0)
	return false
}

// roomToSubmit reports whether more reads may be submitted. The limit on bytes does not count reads
// that wait for buffers, so their number is limited, too.
func (e *Elevator) roomToSubmit() bool {
	return e.queue.HeldBytes() < e.limit && e.queue.Pending() < cap(e.stops)/plan.StopsPerRequest
}

// step is one turn of the elevator: it starts some reads and uses the results of others that have
// ended. It returns false if there are no stops.
func (e *Elevator) step(ctx context.Context) bool {
	if e.next == len(e.stops) && !e.planStretch() {
		on := e.queue.Pending() > 0
		e.collect(ctx, true)
		e.handOverCarried(handOverChunks)
		return on
	}
	for e.next < len(e.stops) && e.roomToSubmit() {
		e.submitStops()
	}
	e.collect(ctx, false)
	e.handOverCarried(handOverChunks)
	return true
}
