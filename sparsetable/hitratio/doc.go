// Package hitratio measures which share of the rows of each mini-batch a cache
// of bounded size finds in memory, for several ways of choosing the rows that
// leave: those of package rowcache (the code that trains, not a model of it),
// LRU, LFU and W-TinyLFU for comparison, and three bounds.
//
// The trace is synthetic: batches of lookups whose keys follow Zipf's law. Each
// batch's unique keys are pulled and released before the next one's. A run is
// two phases of as many batches each; hits are counted in the second, while the
// first warms the cache.
//
// The bounds tell how much is left to gain:
//
//	MIN          sees the whole future: rows leave in order of their true next
//	             use (Belady 1966), and rows need not be kept while in use
//	popularity   knows every key's true probability, nothing of the future: no
//	             policy without announcements can be better in the mean
//	window       knows every probability and the announced batches: no lookahead
//	             of that length can be better in the mean
//
// "ideal" gives every policy the same rows: budget / (value + 8 bytes of key).
// "hard" gives the policies of rowcache the budget itself, with all metadata
// and the window counted: what a table really has.
//
// The command around it is bench/policies.
package hitratio
