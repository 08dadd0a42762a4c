package sparsetable

import (
	"math"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/slots"
)

// How large buckets are. Reads take the longer the more they read: at queue
// depth 128 the device at hand does 89,000 a second of 512 bytes, 81,000 of 1.5
// KiB, 73,000 of 3 KiB, which is 10.8 us and 1 us per KiB. A row that leaves the
// cache dirty costs, beside the read that brought it, another one and a write of
// its whole bucket, and with it compaction later: 2.4 us per KiB with the
// processor's share. So a row that is missed costs 22 + 4.4 us per KiB of
// bucket, 28 at 13 rows of 104 bytes and 35 at 28. Small buckets take memory: 8
// bytes each, and filters of 10 bits a key need buckets of 13 rows to stay
// within 2 bytes a key. The cache's hit ratio of unique keys grows by 0.087 times
// the logarithm of its size (package rowcache). With that the cheapest bucket
// under a budget of 16 MiB and 20 million keys has 20 rows, which leaves the
// cache less than half; at 64 MiB it has 9.
//
// That is for devices that read 512 bytes. Where the unit is 4096 bytes, a bucket
// takes a whole block, and 13 rows would fill a third of one. The number of rows
// of a slot varies: by chance, and as slots are split one after the other, from
// 2/3 to 4/3 of the mean. With rows of 104 bytes, of which a block holds 39, a mean
// of
//
//	20 rows  takes 208 bytes a row, 3 % of the rows are in buckets of two blocks
//	30             160             27 %
//	39             151             56 %
//
// The bytes on disk per row, which are also what a row costs to write, times what
// a miss of it costs by the formula above, are least at 3/4 of what a block holds,
// within 2 %, whatever the size of rows (TestShapeUnits computes it). Where that is
// less than what 1440 bytes hold, as with a unit of 512, it has no effect.
const (
	// smallBucketBytes is the mean size of buckets while memory allows, or
	// unitFill of what a unit holds, if that is more.
	smallBucketBytes = 1440
	unitFill         = 0.75
	// A bucket holds fewRows where that many fit a block, fewestRows else: with
	// 8 bytes of filter, 8 rows are 2 bytes a key.
	fewRows, fewestRows = 8, 3
	// largeBucketBytes is what buckets of a table grow to, on average, when
	// their number is held, with no ill effect but on speed; smallestSSD asks
	// for hugeBucketBytes, where a read costs twice as much.
	largeBucketBytes = 4096
	hugeBucketBytes  = 16384
	// wideBucketBytes bounds buckets of wide rows.
	wideBucketBytes = 96 << 10

	// indexShare is the part of the memory for index and cache that the index,
	// filters included, takes at most. The cheapest division of 16 MiB gives it
	// half, but passes in flight must have their rows in the cache as well, and
	// it is flat: at two fifths the cost is 5 % above the least. Filters get
	// no share of their own: where new keys come, which are a third of the keys
	// pulled from a table being filled, they spare most reads, worth more than
	// the cache they displace until they take half; where none come, as much
	// cache is worth a twentieth of the cost.
	indexShare = 2.0 / 5

	probesPerFilter = 4 // good for filters of 10 bits a key and for half of that
)

// bucketShape says how many rows buckets hold, on average over slots.
type bucketShape struct {
	small, large, huge int
	filterBytes        int // per slot, of small buckets; 0: none is worth it
}

// shapeOf returns the shape for rows of that layout, in buckets that take whole
// units of unit bytes.
func shapeOf(l Layout, unit int) bucketShape {
	entry := entryBytes(l)
	s := bucketShape{small: max((smallBucketBytes-bucketHeaderSpace)/entry, min(fewRows, 4096/entry), fewestRows)}
	s.small = max(1, min(s.small, 64, wideBucketBytes/entry))
	s.small = max(s.small, int(math.Ceil(unitFill*float64(bucketfile.RowsIn(unit, l.Words())))))
	s.large = max(s.small, largeBucketBytes/entry)
	s.huge = max(s.large, hugeBucketBytes/entry)
	// 8 to 12 bits a key, or as many as the largest filter has; at most 2 bytes a
	// key with the location; of wide rows 8 bytes are nothing.
	s.filterBytes = 8
	for _, f := range []int{16, 32, 48, 64} {
		if 8*f <= 12*s.small && f+8 <= 2*s.small {
			s.filterBytes = f
		}
	}
	return s
}

// capacity is how many rows a bucket can have: three times the largest mean,
// and what chance adds to a small one. In the middle of a round of splits some
// slots have 4/3 of the mean.
func (s bucketShape) capacity() int { return 3*s.huge + 13 }

// target is what the mean rows of a bucket should be in a table of that many
// rows, and the size of its filters, so that they take no more than share bytes:
// first filters get smaller, then buckets larger.
func (s bucketShape) target(rows, share int64) (targetRows, filterBytes int) {
	for f := s.filterBytes; ; f = slots.SmallerFilter(f) {
		if slots.BytesFor(slots.Options{FilterBytes: f, TargetRows: s.small}, rows) <= share {
			return s.small, f
		}
		if f == 0 {
			break
		}
	}
	n := max(1, slots.SlotsIn(share, 0))
	return int(min(max((rows+n-1)/n, int64(s.small)), int64(s.huge))), 0
}

// filtersFor is the largest size of filters with which that many slots take no
// more than share bytes.
func (s bucketShape) filtersFor(n, share int64) int {
	f := s.filterBytes
	for f > 0 && slots.BytesFor(slots.Options{FilterBytes: f, TargetRows: 1}, n) > share {
		f = slots.SmallerFilter(f)
	}
	return f
}
