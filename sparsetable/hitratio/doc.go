// Package hitratio measures which share of the rows of each mini-batch is found in a cache
// of bounded size, for several eviction policies: those of package rowcache (it runs the
// real cache, not a simulation of it), LRU, LFU and W-TinyLFU for comparison, and three
// bounds.
//
// The trace is synthetic: batches of lookups whose keys follow Zipf's law. Each
// batch's unique keys are pulled and released before the next one's. A run is
// two phases of as many batches each; hits are counted in the second, while the
// first warms the cache.
//
// The bounds show how much could still be gained:
//
//	MIN          sees the whole future: rows leave in order of their true next
//	             use (Belady 1966), and rows need not be kept while in use
//	popularity   knows every key's true probability, nothing of the future: no
//	             policy without announcements can be better in the mean
//	window       knows every probability and the announced batches: no lookahead
//	             of that length can be better in the mean
//
// "ideal" means that every policy may keep the same number of rows: budget / (value + 8
// bytes of key). "hard" means that the policies of rowcache have the budget in bytes, from
// which metadata and the window are taken, too, as in a real table.
//
// bench/policies is the command that runs these measurements.
package hitratio
