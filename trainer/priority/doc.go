// Package priority chooses the rows of a table that are worth saving more often than others, so
// that partial recovery loses less with a disk (CPR, Maeng et al., MLSys 2021, §4.2). It knows
// nothing of files.
//
// A List sees every pass, before its first mini-batch (Begin) and after its last one (End), when
// the rows of the pass are in memory and nobody changes them. From time to time its owner asks for
// the rows that matter most (Choose), saves them, and says so (Saved). The kinds of lists differ in
// which rows these are:
//
//	mfu    those with the most accesses since they were last saved. The paper has a counter for
//	       each row of the table. Here only rows that were accessed since they were saved have an
//	       entry. The number of accesses in a pass is the difference between the counts in the
//	       row's statistics after and before it.
//	ssu    any of a list of rows that were accessed in a sub-sample of the accesses, on average
//	       every second one. The list has as many rows as are saved at a time. In a full list, a
//	       new row replaces a randomly drawn one. So rows with many accesses are likely to be in
//	       it.
//	scar   those whose values changed most, by the L2 norm of the difference from the saved values.
//	       An entry has the saved values. They are taken at the start of the next pass that uses
//	       the row, since an unused row does not change.
//
// # Memory
//
// A list has a memory limit, which bounds the number of its entries. When an mfu or scar list is
// full, the half of the entries that matter least is dropped, as if their rows had been saved:
// their accumulated scores are forgotten. So a row's score is never too high, and rows with scores
// far above the others stay.
//
//	keys   []uint64   8 bytes per entry; entries are dense, and the last one takes the place of
//	                  a removed one
//	score  []float32  4 bytes: accesses, or the norm; not used in ssu
//	base   []float32  the values of the row in scar
//	index  []uint32   a hash table of positions in keys, with linear probing, at most three
//	                  quarters full
//
// Nothing here is safe for concurrent use: a List belongs to the goroutine that trains.
package priority
