package plan

import (
	"math"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/slots"
)

// This file determines how large buckets are. A longer read takes longer: at queue depth 128 the
// measured device does 89,000 reads a second of 512 bytes, 81,000 of 1.5 KiB, and 73,000 of 3 KiB,
// which is 10.8 us plus 1 us per KiB. A row that leaves the cache dirty costs, besides the read
// that brought it, another read, a write of its whole bucket, and compaction later: 2.4 us per KiB,
// including the processor's time. So a missed row costs 22 us plus 4.4 us per KiB of its bucket: 28
// us with 13 rows of 104 bytes, and 35 us with 28. Small buckets take more memory: each takes 8
// bytes, and with filters of 10 bits a key, buckets must have 13 rows for slots to take at most 2
// bytes a key. The cache's hit ratio of unique keys grows by 0.087 times the logarithm of its size
// (package rowcache). By these figures the cheapest bucket for 20 million keys has 20 rows under a
// budget of 16 MiB, which leaves less than half of the memory to the cache, and 9 rows under 64
// MiB.
//
// That holds for devices that can read 512 bytes. If the unit is 4096 bytes, a bucket takes at
// least one unit, of which 13 rows would fill a third. The number of rows of a slot varies by
// chance, and because slots are split one after the other: from 2/3 to 4/3 of the mean. With rows
// of 104 bytes, of which a unit holds 39, a mean of
//
//	20 rows  takes 208 bytes a row, 3 % of the rows are in buckets of two blocks
//	30             160             27 %
//	39             151             56 %
//
// The bytes on disk per row, which are also the cost of writing a row, are multiplied by the cost
// of a miss by the formula above. For rows of any size, this product is least, within 2 %, when the
// mean is 3/4 of the rows that a unit holds (TestShapeUnits computes it). If that is fewer rows
// than 1440 bytes hold, as with a unit of 512, it has no effect.
const (
	// As long as memory allows, the mean size of buckets is smallBucketBytes, or unitFill times the
	// rows that a unit holds if that is more.
	smallBucketBytes = 1440
	unitFill         = 0.75
	// The mean bucket has at least fewRows rows if that many fit 4096 bytes, and at least
	// fewestRows otherwise. With a filter of 8 bytes, 8 rows take 2 bytes of index a key.
	fewRows, fewestRows = 8, 3
	// When memory allows no more slots, buckets grow. Up to a mean of largeBucketBytes that only
	// costs some speed. The smallest budget that Smallest returns leads to buckets of
	// hugeBucketBytes, whose reads take twice as long.
	largeBucketBytes = 4096
	hugeBucketBytes  = 16384
	// wideBucketBytes bounds the mean size of buckets with wide rows.
	wideBucketBytes = 96 << 10

	// Filters have at least floorBits bits a key, on average, as long as index and filters take no
	// more than floorShare of the memory for index and cache: until then filters are worth more
	// than the cache that could use the memory, see IndexShare. The window of announced passes has
	// the part of its memory that such filters leave. With 4 bits a key, filters avoid four of five
	// reads for new keys.
	floorBits  = 4
	floorShare = 1.0 / 2

	// IndexShare is the maximum part of the memory for index and cache that the index, filters
	// included, may take. The cheapest division of 16 MiB would give half to the index. But passes
	// in flight must have their rows in the cache as well, and the cost depends little on the
	// division: at two fifths it is 5 % above the minimum. Filters have no share of their own. A
	// third of the keys that are pulled while a table is filled are new, and filters avoid the
	// reads for most of these; that is worth more than the cache that could use the memory, until
	// the filters take half of it. If no new keys come, more cache instead of filters would reduce
	// the cost by only a twentieth.
	IndexShare = 2.0 / 5

	probesPerFilter = 4 // suits filters of 10 bits a key and of half of that
)

// Shape says how many rows buckets hold, on average over slots.
type Shape struct {
	Small, Large, Huge int
	filterBytes        int // per slot, with small buckets; 0: filters do not pay
}

// ShapeOf returns the shape for rows of that layout, in buckets that take whole units of unit
// bytes.
func ShapeOf(l layout.Layout, unit int) Shape {
	entry := layout.EntryBytes(l)
	s := Shape{Small: max((smallBucketBytes-BucketHeaderSpace)/entry, min(fewRows, 4096/entry), fewestRows)}
	s.Small = max(1, min(s.Small, 64, wideBucketBytes/entry))
	s.Small = max(s.Small, int(math.Ceil(unitFill*float64(bucketfile.RowsIn(unit, l.Words())))))
	s.Large = max(s.Small, largeBucketBytes/entry)
	s.Huge = max(s.Large, hugeBucketBytes/entry)
	// Filters have 8 to 12 bits a key, or fewer if the largest filter has no more, and take at most
	// 2 bytes a key together with the location. The smallest has 8 bytes, which are negligible for
	// wide rows.
	s.filterBytes = 8
	for _, f := range []int{16, 32, 48, 64} {
		if 8*f <= 12*s.Small && f+8 <= 2*s.Small {
			s.filterBytes = f
		}
	}
	return s
}

// Capacity is the maximum number of rows of a bucket.
func (s Shape) Capacity() int { return LikelyRows(s.Huge) }

// LikelyRows is the number of rows that hardly any bucket exceeds if the mean is mean: three times
// the mean, and some more for the random variation of a small mean. In the middle of a round of
// splits some slots have 4/3 of the mean.
func LikelyRows(mean int) int { return 3*mean + 13 }

// Floor is the size of the smallest filters that are worth their memory.
func (s Shape) Floor() int {
	f := s.filterBytes
	for small := slots.SmallerFilter(f); small > 0 && 8*small >= floorBits*s.Small; small = slots.SmallerFilter(f) {
		f = small
	}
	return f
}

// Share is the maximum size of the index: floor with the smallest filters that are worth their
// memory, most with larger ones or none.
type Share struct{ most, floor int64 }

// allowed is the maximum size of the index with filters of that size.
func (s Shape) allowed(a Share, filterBytes int) int64 {
	if filterBytes > 0 && filterBytes <= s.Floor() {
		return a.floor
	}
	return a.most
}

// Target returns the mean number of rows per bucket for a table of that many rows, and the size of
// its filters, such that the index stays within its maximum size. If necessary, it makes filters
// smaller, down to the floor, then drops them, and then makes buckets larger.
func (s Shape) Target(rows int64, a Share) (targetRows, filterBytes int) {
	for f := s.filterBytes; ; f = slots.SmallerFilter(f) {
		if 0 < f && f < s.Floor() {
			continue
		}
		if slots.BytesFor(slots.Options{FilterBytes: f, TargetRows: s.Small}, rows) <= s.allowed(a, f) {
			return s.Small, f
		}
		if f == 0 {
			break
		}
	}
	n := max(1, slots.SlotsIn(a.most, 0))
	return int(min(max((rows+n-1)/n, int64(s.Small)), int64(s.Huge))), 0
}

// filtersFor returns the largest size of filters with which n slots stay within the maximum size of
// the index.
func (s Shape) filtersFor(n int64, a Share) int {
	f := s.filterBytes
	for f > 0 && (f < s.Floor() || slots.BytesFor(slots.Options{FilterBytes: f, TargetRows: 1}, n) > s.allowed(a, f)) {
		f = slots.SmallerFilter(f)
	}
	return f
}
