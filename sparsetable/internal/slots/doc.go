// Package slots finds the bucket of a key without a byte of memory per key but
// the bits of a Bloom filter (AIBox §4.1).
//
// # Slots
//
// A key hashes to a slot, and all rows of a slot lie in one bucket on an SSD.
// Per slot the index holds where that bucket is and a filter of its keys:
//
//	location   8 bytes   opaque to this package; 0: the slot has no bucket
//	filter     FilterBytes, 0 to 64: a Bloom filter of the bucket's keys
//
// With 13 rows a slot and 16 bytes of filter that is 24 bytes a slot, 1.85 a
// key, and of the keys that a bucket does not hold 2.3 % cost a read.
//
// # Growth and shrinking
//
// The number of slots n grows by one at a time (linear hashing, Litwin 1980).
// With L = floor(log2 n), slot 2^L + i exists for the first n - 2^L values of
// i, and shares with slot i the low L bits of its keys' hashes:
//
//	s = hash mod 2^(L+1);  if s >= n then s = hash mod 2^L
//
//	n = 6, L = 2   slot   0   1 | 2   3 | 4   5
//	               bits 000 001 |10  11 |100 101      next split: 2 -> 2, 6
//
// NextSplit names the slot that splits next and the one that it creates. Grow
// makes the second, without a bucket; in the same critical section the caller
// sets what both have become (Set, ResetFilter, Add). A split moves keys from
// the one to the other and nowhere else. Nothing is copied or rehashed: memory
// grows by chunks of 2,048 slots, and chunks stay where they are.
//
// A merge is the reverse of a split: NextMerge names the last slot and the one
// that it was split from, Shrink takes the last away, and the caller sets what
// the other has become. A chunk without slots is unmapped.
//
// A slot not yet split in its round has twice the rows of one that was, so
// buckets hold between 2/3 and 4/3 of the target in the middle of a round. The
// figures for filters below are means over a round, weighted by that.
//
// # Filters
//
// A library's filter is an object of its own with a bit array of its own: at
// one of 32 bytes a slot, pointers and headers cost several times the bits, and
// the garbage collector walks millions of them. Here the filter of slot s lies
// at s times FilterBytes in mapped memory. All k probes stay inside these at
// most 64 bytes, so one costs a cache miss, not k.
//
// Probe i takes 12 bits of a second hash, mixed from the key's by a 128-bit
// product, since a slot's keys share the low bits of the first. bits-and-blooms
// derives its probes by double hashing, h1 + i*h2; with only 256 bits two keys
// often share such a sequence, which independent bits avoid. k is half the bits
// a key, below the textbook's ln 2 = 0.69 times: since rows spread unevenly
// over slots, full filters decide. It is 5 at most, what one 64-bit hash
// yields: more would help only filters that hardly err anyway. False positives
// measured by TestFalsePositives (0.8 to 1.3 million keys, 24 rows a slot, over
// a whole round):
//
//	filter bytes     16      24      32      48      64
//	bits a key      5.3     8.0    10.7    16.0    21.3
//	k                 3       4       5       5       5
//	of absent keys 10.4 %   3.9 %   1.6 %  0.34 %  0.10 %
//
// Filters shrink (ShrinkFilters) when their memory is needed: by half, without a
// look at the keys. TestShrunkFalsePositives, 13 rows a slot and 4 probes, in
// the middle of a round:
//
//	filter bytes     16      8      0
//	bytes a key    1.85   1.23   0.62   (locations included)
//	of absent keys 2.3 %  14 %  100 %
//
// A filter loses no key (no false negatives), but can only be built anew: when
// a bucket is rewritten its filter is reset and its keys are added. A filter of
// ones (see FilterUnknown) stands for a bucket whose keys are not known, which
// is how pages written without filters, or with fewer probes, come back. Filters
// that were written larger or smaller by a power of two are made smaller, or larger:
// these let through what they did, until they are set anew.
//
// # Pages
//
// For the catalog the slots are cut into pages of Options.PageSlots. A page
// that changed is dirty. BeginCapture fixes the dirty pages as they are: they
// are then written one by one while the index goes on changing, a page about to
// change being encoded first. Done forgets that they were dirty, Abort marks
// them again. A page is, all integers little-endian:
//
//	0   page          uint32   its number
//	4   slots         uint16   of it that exist, n
//	6   filterBytes   uint8    F
//	7   probes        uint8    k
//	8   locations     n x uint64
//	…   filters       n x F bytes, as uint64 words
//	…   crc           uint32   CRC-32C of everything before
//
// # Marks
//
// A slot can be marked (Mark, Unmark), a bit in memory alone, as a note of the
// caller's that something is to be done there; Marked finds the marked ones. When
// slots are split or merged no mark is lost.
//
// # Concurrency
//
// An Index has no lock. Methods that only read (Slot, Route, Lookup, Location,
// MayContain, FilterUnknown, NextSplit, NextMerge, ShouldSplit, EncodePage, Stats
// and the sizes), and those of marks, may run beside one another; every other one needs to be alone.
// A sync.RWMutex held for a batch of keys is what it is made for: a lookup
// costs tens of nanoseconds, a lock for each would double that.
package slots
