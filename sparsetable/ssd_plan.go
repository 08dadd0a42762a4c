package sparsetable

import (
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/deltafile"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssdPlan says how a table on SSD divides its memory budget. Some parts are fixed
// as long as the table is open; index and cache share the rest.
type ssdPlan struct {
	shape       bucketShape
	bufferBytes int   // size of an append buffer
	readBytes   int64 // for reads in flight
	carryBytes  int64 // for copies of buckets that working sets carry
	rideBytes   int64 // for reads of the elevator
	rideStops   int   // most stops in a stretch of the elevator
	appendBytes int64 // append buffers
	blockBytes  int64 // delta blocks
	poolBytes   int64 // scans and reads
	fixedBytes  int64 // everything but index, cache and what pulls take
	spareBytes  int64 // used only while pinned rows prevent that the cache shrinks
	sharedBytes int64 // for index and cache together
	filterBytes int   // per slot, when the table is opened
	targetRows  int   // mean rows of a bucket, when the table is opened
	cacheBytes  int64 // most bytes of the cache, however small the index gets
}

const (
	bucketHeaderSpace = 64
	appendBuffers     = 3 // in each directory: one being filled, one being written, one waiting
	minReadBytes      = 768 << 10
	maxReadBytes      = 8 << 20
	carryShare        = 8 // one part in so many of what buffers and the like leave
	passCarryBytes    = 24 << 20
	smallCarry        = 32 << 20
	// ssdScratchBytes is an upper estimate of the memory that rewriting, the
	// catalog's lists and the queues take.
	ssdScratchBytes = 512 << 10

	// Pinned rows cannot move, and while every slab of the cache has some, none can
	// be given back. Memory that is needed in the meantime is taken from a reserve,
	// the spare bytes. They are more than two slabs; a slab has 1/128 of the cache.
	spareShare    = 96
	minSpareBytes = 32 << 10

	// indexSlackBytes is by how much the index's marks may exceed their estimate.
	indexSlackBytes = 4096
)

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// planSSD divides the budget of a table that has that many rows and slots so far,
// and whose buckets take whole units of unit bytes.
func planSSD(budget int64, l Layout, unit int, s SSDOptions, rows, slotsNow int64) ssdPlan {
	p := ssdPlan{shape: shapeOf(l, unit)}
	biggest := roundUp(4096+bucketHeaderSpace+int64(p.shape.capacity()*layout.EntryBytes(l)), 4096)
	p.bufferBytes = int(max(min(roundUp(budget/256, 4096), 1<<20), 64<<10, biggest))
	p.readBytes = max(minReadBytes, min(budget/16, maxReadBytes), 4*int64(p.bufferBytes))
	p.poolBytes = int64(p.bufferBytes) + p.readBytes
	p.blockBytes = int64(deltafile.BlocksNeeded(max(1, len(s.Dirs))) * deltafile.BlockBytes(l.Bytes()))
	if s.CachePolicy == policyLookahead {
		p.rideBytes = min(budget/rideShare, maxRideBytes)
		p.rideStops = int(p.rideBytes / rideBytesPerStop)
	}
	p.poolBytes += p.rideBytes
	p.appendBytes = int64(len(s.Dirs)*appendBuffers) * int64(p.bufferBytes)
	p.fixedBytes = p.appendBytes + p.blockBytes + p.poolBytes + ssdScratchBytes + catalog.FixedBytes + int64(p.rideStops)*stopBytes
	p.carryBytes = carryBytesOf(max(0, budget-p.fixedBytes))
	p.fixedBytes += p.carryBytes
	p.spareBytes = max(budget/spareShare, minSpareBytes)
	p.sharedBytes = max(0, budget-p.fixedBytes-indexSlackBytes-p.spareBytes)
	p.targetRows, p.filterBytes = p.shape.target(rows, p.indexLimits())
	if f := p.shape.filtersFor(slotsNow, p.indexLimits()); f < p.filterBytes {
		p.filterBytes = f
	}
	p.cacheBytes = p.sharedBytes - p.bareIndex(rows, slotsNow)
	for p.filterBytes > 0 && !p.leavesCache(l, s, max(slotsNow, (rows+int64(p.targetRows)-1)/int64(p.targetRows))) {
		p.filterBytes = slots.SmallerFilter(p.filterBytes)
	}
	return p
}

// carryBytesOf is the part of left that is for carried buckets. A pass of 27,600
// unique keys, in a table that outgrows the cache, misses 9,000 of them, whose
// buckets take 14 MiB. An eighth of a large budget holds two such passes. Of a
// smaller budget a quarter pays, because a bucket that is not carried costs a
// second read, while a cache that is a seventh smaller only misses one more row in
// seventy. A budget that is small compared with the buckets of any pass cannot
// carry them anyway, so it gives up only an eighth.
func carryBytesOf(left int64) int64 {
	if left < smallCarry {
		return left / carryShare
	}
	return min(2*left/carryShare, max(left/carryShare, passCarryBytes))
}

// bufferedBytes is the memory of all kinds of buffers.
func (p *ssdPlan) bufferedBytes() int64 { return p.appendBytes + p.blockBytes + p.poolBytes }

// beyondBytes is the part of poolBytes that is kept for calls that cannot wait
// until buffers are given back: a scan, and a read when no other is in flight.
func (p *ssdPlan) beyondBytes() int64 { return int64(p.bufferBytes) + 128<<10 }

// forReading gives the memory that only writing needs to index and cache.
func (p *ssdPlan) forReading() {
	p.fixedBytes -= p.carryBytes
	p.sharedBytes += p.carryBytes
	p.cacheBytes += p.carryBytes
	p.carryBytes = 0
}

// indexLimit is the most memory that the index, filters included, may take; beyond
// that, buckets grow.
func (p *ssdPlan) indexLimit() int64 { return int64(indexShare * float64(p.sharedBytes)) }

// indexLimits is how much memory the index may take, by the size of its filters.
func (p *ssdPlan) indexLimits() share {
	return share{most: p.indexLimit(), floor: int64(floorShare * float64(p.sharedBytes))}
}

// leavesCache reports whether the filters leave enough memory for the smallest
// possible cache.
func (p *ssdPlan) leavesCache(l Layout, s SSDOptions, n int64) bool {
	o := p.cacheOptions(l, s)
	index := slots.BytesFor(slots.Options{TargetRows: 1, FilterBytes: p.filterBytes}, n)
	return p.sharedBytes-index >= o.MinBytes()*5/4
}

// bareIndex is the memory that the index takes without filters for that many rows,
// and for that many slots at least.
func (p *ssdPlan) bareIndex(rows, slotsNow int64) int64 {
	return max(slots.BytesFor(slots.Options{TargetRows: p.targetRows}, rows), slots.BytesFor(slots.Options{TargetRows: 1}, slotsNow))
}

// minFileBytes is the size of a small table's bucket files: several buffers, so
// that a new file is not begun with every write.
func (p *ssdPlan) minFileBytes() int64 { return max(1<<20, 4*int64(p.bufferBytes)) }

func (p *ssdPlan) indexOptions() slots.Options {
	o := slots.Options{FilterBytes: p.filterBytes, TargetRows: p.targetRows}
	if p.filterBytes > 0 {
		o.Probes = probesPerFilter
	}
	return o
}

func (p *ssdPlan) cacheOptions(l Layout, s SSDOptions) rowcache.Options {
	return rowcache.Options{
		Words: l.Words(), MaxBytes: p.cacheBytes, Policy: s.CachePolicy, Hash: slots.Hash,
		LookaheadPasses: s.LookaheadPasses, NoteMissing: p.rideBytes > 0,
	}
}

// load describes the use of a table for which a budget has to be enough.
type load struct {
	rows     int64 // of the table
	slots    int64 // that it has already
	resident int64 // rows in memory at a time
	other    int64 // bytes that pulls take
}

// fitsSSD reports whether a budget is enough: whether buckets need not be larger
// than the huge ones of the shape, and whether the cache that remains without
// filters holds the resident rows.
func fitsSSD(budget int64, l Layout, unit int, s SSDOptions, need load) bool {
	p := planSSD(budget, l, unit, s, need.rows, need.slots)
	if slots.BytesFor(slots.Options{TargetRows: p.shape.huge}, need.rows) > max(p.indexLimit(), slots.BytesFor(slots.Options{}, 1)) {
		return false
	}
	o := p.cacheOptions(l, s)
	return o.MaxBytes >= o.MinBytes() && o.FitRowsIn(o.MaxBytes-need.other-indexSlackBytes) >= max(need.resident, 1)
}

// smallestSSD is the smallest budget that fits, found by bisection. Because the
// parts of a budget are rounded to pages, it is exact only to a few pages.
func smallestSSD(l Layout, unit int, s SSDOptions, need load) int64 {
	low, high := int64(0), int64(1)<<20
	for !fitsSSD(high, l, unit, s, need) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := (low + high) / 2; fitsSSD(mid, l, unit, s, need) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
