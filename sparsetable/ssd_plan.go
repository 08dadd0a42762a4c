package sparsetable

import (
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssdPlan says how a table on SSD divides its memory budget: what is taken for
// good first, the rest is shared by index and cache.
type ssdPlan struct {
	shape       bucketShape
	bufferBytes int   // of an append buffer
	readBytes   int64 // for reads on their way
	carryBytes  int64 // for buckets that working sets carry
	rideBytes   int64 // for reads of the elevator
	rideStops   int   // of a stretch of it
	appendBytes int64 // append buffers
	blockBytes  int64 // delta blocks
	poolBytes   int64 // scans and reads
	fixedBytes  int64 // everything but index, cache and what pulls take
	spareBytes  int64 // that are used only where pinned rows are in the way
	sharedBytes int64 // of index and cache
	filterBytes int   // per slot, when the table is opened
	targetRows  int   // mean rows of a bucket, when the table is opened
	cacheBytes  int64 // at most, however small the index gets
}

const (
	bucketHeaderSpace = 64
	appendBuffers     = 3 // of a directory: one filled, one written, one waiting
	minReadBytes      = 768 << 10
	maxReadBytes      = 8 << 20
	carryShare        = 8 // of what is not taken for good
	passCarryBytes    = 24 << 20
	smallCarry        = 32 << 20
	// ssdScratchBytes is what rewriting, the catalog's lists and queues take,
	// roughly and at most.
	ssdScratchBytes = 512 << 10

	// Pinned rows cannot move, and where every slab of the cache has some none
	// can be given back until they are released. Until then what is to have its
	// room takes it from what is kept for that: two slabs and more, of 1/128 of
	// the cache each.
	spareShare    = 96
	minSpareBytes = 32 << 10

	// indexSlackBytes is what the index's own marks take beyond their estimate.
	indexSlackBytes = 4096
)

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// planSSD divides budget for a table of that many rows so far, in that many
// slots, whose buckets take whole units of unit bytes.
func planSSD(budget int64, l Layout, unit int, s SSDOptions, rows, slotsNow int64) ssdPlan {
	p := ssdPlan{shape: shapeOf(l, unit)}
	biggest := roundUp(4096+bucketHeaderSpace+int64(p.shape.capacity()*entryBytes(l)), 4096)
	p.bufferBytes = int(max(min(roundUp(budget/256, 4096), 1<<20), 64<<10, biggest))
	p.readBytes = max(minReadBytes, min(budget/16, maxReadBytes), 4*int64(p.bufferBytes))
	p.poolBytes = int64(p.bufferBytes) + p.readBytes
	p.blockBytes = 2 * deltaPoolBlocks * int64(deltaBlockBytes(l)) // of a snapshot, and of one being restored
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
	p.targetRows, p.filterBytes = p.shape.target(rows, p.indexLimit())
	if f := p.shape.filtersFor(slotsNow, p.indexLimit()); f < p.filterBytes {
		p.filterBytes = f
	}
	p.cacheBytes = p.sharedBytes - p.bareIndex(rows, slotsNow)
	for p.filterBytes > 0 && !p.leavesCache(l, s, max(slotsNow, (rows+int64(p.targetRows)-1)/int64(p.targetRows))) {
		p.filterBytes = slots.SmallerFilter(p.filterBytes)
	}
	return p
}

// carryBytesOf is the part of left for carried buckets. A pass of 27,600 unique
// keys of a table that outgrows the cache misses 9,000 of them, whose buckets take
// 14 MiB: an eighth of a large budget holds two such passes, and for a smaller one
// a quarter is well spent, as a bucket that is not carried costs a second read,
// while a cache that is a seventh smaller misses one row in seventy more. Of a
// budget that is small against the buckets of any pass an eighth is enough to
// lose.
func carryBytesOf(left int64) int64 {
	if left < smallCarry {
		return left / carryShare
	}
	return min(2*left/carryShare, max(left/carryShare, passCarryBytes))
}

// bufferedBytes is what buffers of all kinds take.
func (p *ssdPlan) bufferedBytes() int64 { return p.appendBytes + p.blockBytes + p.poolBytes }

// beyondBytes is the part of poolBytes that is left to those who cannot wait until
// buffers come back: a scan, and a read when no other is on its way.
func (p *ssdPlan) beyondBytes() int64 { return int64(p.bufferBytes) + 128<<10 }

// forReading gives what only writers need to index and cache.
func (p *ssdPlan) forReading() {
	p.fixedBytes -= p.carryBytes
	p.sharedBytes += p.carryBytes
	p.cacheBytes += p.carryBytes
	p.carryBytes = 0
}

// indexLimit is what index and filters may take before buckets grow.
func (p *ssdPlan) indexLimit() int64 { return int64(indexShare * float64(p.sharedBytes)) }

// leavesCache reports whether with the filters the smallest cache fits.
func (p *ssdPlan) leavesCache(l Layout, s SSDOptions, n int64) bool {
	o := p.cacheOptions(l, s)
	index := slots.BytesFor(slots.Options{TargetRows: 1, FilterBytes: p.filterBytes}, n)
	return p.sharedBytes-index >= o.MinBytes()*5/4
}

// bareIndex is what the index takes without filters for that many rows, in that
// many slots at least.
func (p *ssdPlan) bareIndex(rows, slotsNow int64) int64 {
	return max(slots.BytesFor(slots.Options{TargetRows: p.targetRows}, rows), slots.BytesFor(slots.Options{TargetRows: 1}, slotsNow))
}

// minFileBytes is the size of a small table's bucket files: several buffers, so
// that few writes are to a new file.
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

// load is what a budget has to be enough for.
type load struct {
	rows     int64 // of the table
	slots    int64 // that it has already
	resident int64 // rows in memory at a time
	other    int64 // bytes that pulls take
}

// fitsSSD reports whether a budget is enough: buckets need not be huge, and what
// remains without filters holds the resident rows.
func fitsSSD(budget int64, l Layout, unit int, s SSDOptions, need load) bool {
	p := planSSD(budget, l, unit, s, need.rows, need.slots)
	if slots.BytesFor(slots.Options{TargetRows: p.shape.huge}, need.rows) > max(p.indexLimit(), slots.BytesFor(slots.Options{}, 1)) {
		return false
	}
	o := p.cacheOptions(l, s)
	return o.MaxBytes >= o.MinBytes() && o.FitRowsIn(o.MaxBytes-need.other-indexSlackBytes) >= max(need.resident, 1)
}

// smallestSSD is the smallest budget that fits, found by bisection; what a
// budget is cut into makes it exact to a few pages.
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
