// Package numbering numbers keys in the order of their first use. A Table numbers the keys of a
// mini-batch, which recur. A Merger numbers the keys of a pass, given the unique keys of each of
// its mini-batches.
//
// Both use the same kind of table, which is emptied and reused for the next keys. A Table is for
// one goroutine. Merging is by far the largest part of the work of the goroutine that calls
// Reader.Next, so idle workers help a Merger; the numbers do not depend on who helps.
package numbering
