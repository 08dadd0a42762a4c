// Package slots finds the bucket of a key. It needs no memory per key except for the
// bits of a Bloom filter (AIBox §4.1).
//
// # Slots
//
// A key hashes to a slot, and all rows of a slot lie in one bucket on an SSD.
// Per slot the index holds where that bucket is and a filter of its keys:
//
//	location   8 bytes   opaque to this package; 0: the slot has no bucket
//	filter     FilterBytes, 0 to 64: a Bloom filter of the bucket's keys
//
// With 13 rows a slot and filters of 16 bytes, a slot takes 24 bytes, which is 1.85
// bytes a key. The filters let 2.3 % of the absent keys through, each of which then
// costs a read.
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
// NextSplit names the slot that splits next and the slot that the split creates.
// Grow makes the new slot, without a bucket; in the same critical section the caller
// sets the locations and filters of both slots (Set, ResetFilter, Add). A split only
// moves keys from the one slot to the other. Nothing is copied or rehashed: memory
// grows by chunks of 2,048 slots, and chunks stay where they are.
//
// A merge is the reverse of a split: NextMerge names the last slot and the slot that
// it was split from, Shrink removes the last slot, and the caller sets the location
// and filter of the other one. A chunk without slots is unmapped.
//
// The number of slots doubles in a round of splits. A slot that is not yet split in
// its round has twice the rows of a slot that is, so buckets hold between 2/3 and
// 4/3 of the target in the middle of a round. The figures for filters below are means
// over a round that take this into account.
//
// # Filters
//
// A filter of a library is an object with its own bit array. With one filter of 32
// bytes a slot, pointers and headers would take several times the memory of the bits,
// and the garbage collector would have to walk millions of them. Here the filter of slot s lies at
// s times FilterBytes in mapped memory. All k probes stay inside the filter's 64 bytes or fewer, so
// a query costs one cache miss instead of k.
//
// Each probe takes 12 bits of a second hash, which a 128-bit product mixes from the
// key's hash, because the keys of a slot share the low bits of the first hash.
// bits-and-blooms derives its probes by double hashing, h1 + i*h2; in a filter of
// only 256 bits two keys would often share such a sequence, and independent bits
// avoid that. k is half the bits a key, which is below the textbook's ln 2 = 0.69
// times: rows spread unevenly over slots, and the fullest filters cause most of the
// false positives. k is at most 5, because one 64-bit hash has bits for no more; a
// larger k would only help filters that hardly ever err anyway. TestFalsePositives
// (0.8 to 1.3 million keys, 24 rows a slot, over a whole round) measures these rates
// of false positives:
//
//	filter bytes     16      24      32      48      64
//	bits a key      5.3     8.0    10.7    16.0    21.3
//	k                 3       4       5       5       5
//	of absent keys 10.4 %   3.9 %   1.6 %  0.34 %  0.10 %
//
// ShrinkFilters halves the filters when their memory is needed elsewhere, and does
// not need the keys for it. TestShrunkFalsePositives measures these rates, with 13
// rows a slot and 4 probes, in the middle of a round:
//
//	filter bytes     16      8      0
//	bytes a key    1.85   1.23   0.62   (locations included)
//	of absent keys 2.3 %  14 %  100 %
//
// A filter has no false negatives, but no key can be removed from it: when a bucket
// is rewritten, its filter is reset and its keys are added again. A filter whose bits
// are all ones (see FilterUnknown) stands for a bucket whose keys are not known. Filters of pages
// that were written without filters, or with fewer probes, are read as such. Filters that were
// written larger or smaller by a power of two are converted to the present size; an enlarged filter
// lets through as many keys as before until it is rebuilt.
//
// # Pages
//
// For the catalog the slots are divided into pages of Options.PageSlots. A page that
// has changed is dirty. BeginCapture begins a snapshot of the dirty pages, which are
// then written one by one while the index goes on changing; a page that is about to
// change is encoded first. After Done the captured pages count as clean; Abort marks
// them dirty again. A page has this format, in which all integers are little-endian:
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
// A slot can be marked (Mark, Unmark): the caller notes that something is still to be
// done with it. A mark is one bit and exists only in memory. Marked finds the marked
// slots. No mark is lost when slots are split or merged.
//
// # Concurrency
//
// An Index has no lock. Methods that only read (Slot, Lookup, Location,
// MayContain, FilterUnknown, NextSplit, NextMerge, ShouldSplit, Stats and
// the sizes), and the methods for marks, may run at the same time; no other method
// may run at the same time as any method. The caller is meant to hold a sync.RWMutex
// for a batch of keys: a lookup takes tens of nanoseconds, and a lock for each of
// them would double that.
package slots
