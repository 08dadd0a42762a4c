// Package numbering gives keys numbers in the order of their first use: a Table those of a
// mini-batch, where keys recur, and a Merger those of a pass, of whose mini-batches it gets the
// unique keys.
//
// Both number into the same kind of table, which is emptied and kept for the next keys. A Table is
// for one goroutine. Of what the one goroutine that calls Reader.Next does, merging is by far the
// most, so workers that have nothing else to do help a Merger; its numbers do not depend on who
// helps.
package numbering
