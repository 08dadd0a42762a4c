// Package hitratio measures which share of the rows of each mini-batch is found in a cache of
// bounded size, under several eviction policies: those of package rowcache (it runs the real cache,
// not a simulation), LFU and W-TinyLFU for comparison, and three bounds.
//
// The trace is synthetic: batches of lookups whose keys follow Zipf's law. The unique keys of a
// batch are pulled and released before those of the next batch. A run has two phases with the same
// number of batches: the first warms the cache, and hits are counted in the second.
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
// In the setting "ideal" every policy may keep the same number of rows: budget / (value + 8 bytes
// of key). In the setting "hard" the policies of rowcache have the budget in bytes, from which
// metadata and the window are also taken, as in a real table.
//
// bench/policies is the command that runs these measurements.
package hitratio
