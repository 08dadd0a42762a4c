package sparsetable

import (
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssdPlan says how a table on SSD divides its memory budget: what is taken for
// good first, the rest is the cache's.
type ssdPlan struct {
	targetRows  int   // mean rows of a bucket
	bufferBytes int   // of an append buffer
	readBytes   int64 // for reads on their way
	poolBytes   int64 // append buffers, delta buffer, scans and reads
	filterBytes int   // per slot
	fixedBytes  int64 // everything but index, cache and what pulls take
	cacheBytes  int64 // at most
	fitRows     int64 // rows that the cache holds
}

const (
	// An average bucket takes most of one block of 4096 bytes, which a read
	// costs anyway; some of the spread of sizes stays within the block.
	bucketTargetBytes = 3072
	bucketHeaderSpace = 64
	appendBuffers     = 3 // of a directory: one filled, one written, one waiting
	minReadBytes      = 1 << 20
	// ssdScratchBytes is what rewriting, the catalog's lists and queues take,
	// roughly and at most.
	ssdScratchBytes = 512 << 10
	catalogBytes    = 8 << 20 // catalog.MemoryBytes of an empty one

	// indexSlackBytes is what the index's own marks take beyond their estimate.
	indexSlackBytes = 4096

	// Filters take at most this part of the budget, with the index that they
	// go with; else the cache has more use for it.
	indexShare     = 4
	indexRoomShare = 32
)

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// planSSD divides budget for a table of that many rows so far.
func planSSD(budget int64, l Layout, s SSDOptions, rows int64) ssdPlan {
	entry := int64(entryBytes(l))
	p := ssdPlan{targetRows: int(min(max(1, (bucketTargetBytes-bucketHeaderSpace)/entry), 64))}
	// A buffer holds a bucket eight times the mean, which chance alone never
	// makes of a slot.
	biggest := roundUp(4096+bucketHeaderSpace+8*int64(p.targetRows)*entry, 4096)
	p.bufferBytes = int(max(min(roundUp(budget/256, 4096), 1<<20), 64<<10, biggest))
	p.readBytes = max(minReadBytes, budget/16, 4*int64(p.bufferBytes))
	p.poolBytes = int64(len(s.Dirs)*appendBuffers+1)*int64(p.bufferBytes) + 2*int64(deltaBlockBytes(l)) + p.readBytes
	p.fixedBytes = p.poolBytes + ssdScratchBytes + catalogBytes
	p.filterBytes = filterBytesFor(budget, p.targetRows, rows)
	// The index grows with the table, and a cache shrinks with effort only: it
	// has room to double, at least a small part of the budget.
	index := max(slots.BytesFor(p.indexOptions(), 2*rows), budget/indexRoomShare)
	p.cacheBytes = budget - p.fixedBytes - max(slots.BytesFor(p.indexOptions(), rows), min(index, budget/indexShare)) - indexSlackBytes
	return p
}

// minFileBytes is the size of a small table's bucket files: several buffers, so
// that few writes are to a new file.
func (p *ssdPlan) minFileBytes() int64 { return max(1<<20, 4*int64(p.bufferBytes)) }

func (p *ssdPlan) indexOptions() slots.Options {
	return slots.Options{FilterBytes: p.filterBytes, TargetRows: p.targetRows}
}

// filterBytesFor chooses 10 to 12 bits a key, within 2 bytes a key with the
// index's 10 bytes a slot, or none where index and filters would take too much
// of the budget.
func filterBytesFor(budget int64, targetRows int, rows int64) int {
	bytes := min((11*targetRows+32)/64*8, 64)
	if bytes < 8 {
		bytes = 8
	}
	if slots.BytesFor(slots.Options{FilterBytes: bytes, TargetRows: targetRows}, max(rows, 1)) > budget/indexShare {
		return 0
	}
	return bytes
}

func (p *ssdPlan) cacheOptions(l Layout, s SSDOptions) rowcache.Options {
	return rowcache.Options{
		Words: l.Words(), MaxBytes: p.cacheBytes, Policy: s.CachePolicy, Hash: slots.Hash, LookaheadPasses: s.LookaheadPasses,
	}
}

// fitsSSD reports whether a budget is enough for a table with that many rows
// stored, of which so many are in memory at a time, besides other bytes.
func fitsSSD(budget int64, l Layout, s SSDOptions, stored, resident, other int64) bool {
	p := planSSD(budget, l, s, stored)
	o := p.cacheOptions(l, s)
	o.MaxBytes -= other
	return o.MaxBytes >= o.MinBytes() && o.FitRows() >= resident
}

// smallestSSD is the smallest budget that fits, found by bisection; what a
// budget is cut into makes it exact to a few pages.
func smallestSSD(l Layout, s SSDOptions, stored, resident, other int64) int64 {
	low, high := int64(0), int64(1)<<20
	for !fitsSSD(high, l, s, stored, resident, other) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := (low + high) / 2; fitsSSD(mid, l, s, stored, resident, other) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
