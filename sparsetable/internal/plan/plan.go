package plan

import (
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// Table is the input of a plan besides the budget and the size of the table.
type Table struct {
	Layout          layout.Layout
	Unit            int // bytes; a bucket takes a whole number of units
	Dirs            int // directories
	Policy          string
	LookaheadPasses int // of the policy
}

// Plan says how a table divides its memory budget. Some parts are fixed as long as the table is
// open; index and cache share the rest.
type Plan struct {
	Table
	Shape         Shape
	BufferBytes   int   // size of an append buffer
	ReadBytes     int64 // for reads in flight
	CarryBytes    int64 // for copies of buckets that working sets carry
	ElevatorBytes int64 // for reads of the elevator
	ElevatorStops int   // maximum stops in a stretch of the elevator
	appendBytes   int64 // append buffers
	blockBytes    int64 // delta blocks
	PoolBytes     int64 // scans and reads
	fixedBytes    int64 // everything except index, cache and what pulls take
	SpareBytes    int64 // used only while pinned rows keep the cache from shrinking
	SharedBytes   int64 // for index and cache together
	filterBytes   int   // per slot, when the table is opened
	targetRows    int   // mean rows of a bucket, when the table is opened
	CacheBytes    int64 // maximum size of the cache, however small the index gets
}

const (
	// BucketHeaderSpace is the maximum size of a bucket's header.
	BucketHeaderSpace = 64
	// AppendBuffers is the number of append buffers per directory: one being filled, one being
	// written, one waiting.
	AppendBuffers  = 3
	minReadBytes   = 768 << 10
	maxReadBytes   = 8 << 20
	carryShare     = 8 // 1/carryShare of what buffers and the like leave
	passCarryBytes = 24 << 20
	smallCarry     = 32 << 20
	// ScratchBytes is an upper estimate of the memory for rewriting, the catalog's lists and the
	// queues.
	ScratchBytes = 512 << 10

	// The elevator's reads may take 1/elevatorShare of the budget. Half of that is for reads in flight:
	// more than 40 reads of 100 KiB under a budget of 256 MiB. Half of those are submitted at a
	// time. The rest is needed because buffers are rounded up, by a third at most.
	elevatorShare    = 32
	maxElevatorBytes = 16 << 20
	// One stop is planned per elevatorBytesPerStop of the elevator's memory.
	elevatorBytesPerStop = 512
	// A request in flight takes some 370 bytes: the request itself, its keys, its group and its
	// entry in inFlight. There are StopsPerRequest times fewer requests than stops.
	StopsPerRequest = 4
	stopBytes       = 24 + 370/StopsPerRequest

	// Pinned rows cannot move, and while every slab of the cache has some, none can be given back.
	// Memory that is needed in the meantime is taken from a reserve, the spare bytes. They are more
	// than two slabs; a slab has 1/128 of the cache.
	spareShare    = 96
	minSpareBytes = 32 << 10

	// IndexSlackBytes is how far the size of the index's marks may exceed its estimate.
	IndexSlackBytes = 4096
)

// Of divides the budget of a table that has that many rows and slots so far.
func (t Table) Of(budget, rows, slotsNow int64) Plan {
	p := Plan{Table: t, Shape: ShapeOf(t.Layout, t.Unit)}
	biggest := RoundUp(4096+BucketHeaderSpace+int64(p.Shape.Capacity()*layout.EntryBytes(t.Layout)), 4096)
	p.BufferBytes = int(max(min(RoundUp(budget/256, 4096), 1<<20), 64<<10, biggest))
	p.ReadBytes = max(minReadBytes, min(budget/16, maxReadBytes), 4*int64(p.BufferBytes))
	p.PoolBytes = int64(p.BufferBytes) + p.ReadBytes
	p.blockBytes = int64(deltafile.BlocksNeeded(max(1, t.Dirs)) * deltafile.BlockBytes(t.Layout.Bytes()))
	if t.Policy == rowcache.Lookahead {
		p.ElevatorBytes = min(budget/elevatorShare, maxElevatorBytes)
		p.ElevatorStops = int(p.ElevatorBytes / elevatorBytesPerStop)
	}
	p.PoolBytes += p.ElevatorBytes
	p.appendBytes = int64(t.Dirs*AppendBuffers) * int64(p.BufferBytes)
	p.fixedBytes = p.appendBytes + p.blockBytes + p.PoolBytes + ScratchBytes + catalog.FixedBytes + int64(p.ElevatorStops)*stopBytes
	p.CarryBytes = carryBytesOf(max(0, budget-p.fixedBytes))
	p.fixedBytes += p.CarryBytes
	p.SpareBytes = max(budget/spareShare, minSpareBytes)
	p.SharedBytes = max(0, budget-p.fixedBytes-IndexSlackBytes-p.SpareBytes)
	p.targetRows, p.filterBytes = p.Shape.Target(rows, p.IndexLimits())
	if f := p.Shape.filtersFor(slotsNow, p.IndexLimits()); f < p.filterBytes {
		p.filterBytes = f
	}
	p.CacheBytes = p.SharedBytes - p.indexWithoutFilters(rows, slotsNow)
	for p.filterBytes > 0 && !p.leavesCache(max(slotsNow, (rows+int64(p.targetRows)-1)/int64(p.targetRows))) {
		p.filterBytes = slots.SmallerFilter(p.filterBytes)
	}
	return p
}

// carryBytesOf is the part of left for carried buckets. In a table that outgrows the cache, a pass
// of 27,600 unique keys misses 9,000 of them, whose buckets take 14 MiB. An eighth of a large
// budget holds two such passes. Of a smaller budget a quarter pays, because a bucket that is not
// carried costs a second read, while a cache that is a seventh smaller misses only one more row in
// seventy. A budget that is small compared with the buckets of any pass cannot carry them anyway,
// so it gives up only an eighth.
func carryBytesOf(left int64) int64 {
	if left < smallCarry {
		return left / carryShare
	}
	return min(2*left/carryShare, max(left/carryShare, passCarryBytes))
}

// CarryIn is how much of CarryBytes pays if the table has a smaller budget than it was planned for.
func (p *Plan) CarryIn(budget int64) int64 {
	return min(p.CarryBytes, carryBytesOf(max(0, budget-p.fixedBytes+p.CarryBytes)))
}

// BufferedBytes is the memory of all buffers.
func (p *Plan) BufferedBytes() int64 { return p.appendBytes + p.blockBytes + p.PoolBytes }

// RestBytes is the fixed memory besides buffers, carried buckets and the catalog.
func (p *Plan) RestBytes() int64 {
	return p.fixedBytes - p.BufferedBytes() - p.CarryBytes - catalog.FixedBytes
}

// BeyondBytes is the part of PoolBytes that is kept for calls that cannot wait for buffers to be
// returned: a scan, and a read when no other is in flight.
func (p *Plan) BeyondBytes() int64 { return int64(p.BufferBytes) + 128<<10 }

// ForReading gives the memory that only writing needs to the index and the cache.
func (p *Plan) ForReading() {
	p.fixedBytes -= p.CarryBytes
	p.SharedBytes += p.CarryBytes
	p.CacheBytes += p.CarryBytes
	p.CarryBytes = 0
}

// IndexLimit is the maximum size of the index, filters included; beyond it, buckets grow.
func (p *Plan) IndexLimit() int64 { return int64(IndexShare * float64(p.SharedBytes)) }

// IndexLimits is the maximum size of the index, depending on the size of its filters.
func (p *Plan) IndexLimits() Share {
	return Share{most: p.IndexLimit(), floor: int64(floorShare * float64(p.SharedBytes))}
}

// leavesCache reports whether the filters leave enough memory for the smallest possible cache.
func (p *Plan) leavesCache(n int64) bool {
	o := p.CacheOptions()
	index := slots.BytesFor(slots.Options{TargetRows: 1, FilterBytes: p.filterBytes}, n)
	return p.SharedBytes-index >= o.MinBytes()*5/4
}

// indexWithoutFilters is the size of the index without filters for that many rows and at least that many
// slots.
func (p *Plan) indexWithoutFilters(rows, slotsNow int64) int64 {
	return max(slots.BytesFor(slots.Options{TargetRows: p.targetRows}, rows), slots.BytesFor(slots.Options{TargetRows: 1}, slotsNow))
}

// MinFileBytes is the size of a small table's bucket files: several buffers, so that not every
// write begins a new file.
func (p *Plan) MinFileBytes() int64 { return max(1<<20, 4*int64(p.BufferBytes)) }

func (p *Plan) IndexOptions() slots.Options {
	o := slots.Options{FilterBytes: p.filterBytes, TargetRows: p.targetRows}
	if p.filterBytes > 0 {
		o.Probes = probesPerFilter
	}
	return o
}

func (p *Plan) CacheOptions() rowcache.Options {
	return rowcache.Options{
		Words: p.Layout.Words(), MaxBytes: p.CacheBytes, Policy: p.Policy, Hash: slots.Hash,
		LookaheadPasses: p.LookaheadPasses, NoteMissing: p.ElevatorBytes > 0,
	}
}
