// Package priority chooses the rows of a table that are worth saving more often than the
// others, so that less is lost with a disk in partial recovery (CPR, Maeng et al., MLSys
// 2021, §4.2). It knows nothing of files.
//
// A List watches every pass, before its first mini-batch (Begin) and after its last one (End),
// when the rows of the pass are in memory and nobody changes them. From time to time its owner
// asks for the rows that matter most (Choose), saves them, and says so (Saved). Which rows
// these are is what the kinds of lists differ in:
//
//	mfu    those with most accesses since they were saved last. The paper has a counter for
//	       each row of the table. Here an entry belongs to a row that was accessed since it was
//	       saved. The number of accesses in a pass is the difference of the counts that the row's
//	       statistics have after it and before it.
//	ssu    any of a list of rows that were accessed in a sub-sample of the accesses, every second
//	       one on average. The list has as many rows as are saved at a time; in one that is full,
//	       a new row replaces one that is drawn. So rows with many accesses are likely to be
//	       in it.
//	scar   those whose values changed most, by the L2 norm of the difference to what was saved. An
//	       entry has the values that the row had then, as all values of a row stay the same
//	       until the next pass that uses it.
//
// # Memory
//
// A list has a limit of its memory, from which follows how many entries it has at most. When an
// mfu or scar list is full, the half of the entries that matter least is dropped, as if their
// rows had been saved: what they have gathered by then is forgotten. So a row's figure is never too high,
// and those that are far above the others stay.
//
//	keys   []uint64   8 bytes an entry; entries are dense, and the last one takes the place
//	                  of one that is removed
//	score  []float32  4 bytes: accesses, or the norm; not in ssu
//	base   []float32  the values of the row in scar
//	index  []uint32   a hash table of positions in keys, linear probing, at most three quarters
//	                  full
//
// Nothing here is safe for concurrent use: a List belongs to the goroutine that trains.
package priority
