// Package bulk imports rows into a table on SSD: a few rows through the table's cache, many rows by
// two passes of sequential I/O.
//
//	source --> partitions by hash --> spool files          internal/spool
//	                                      |
//	            slots grown for all rows  |                Table.Grow
//	                                      v
//	spool --> a partition in memory, sorted by slot        internal/spool
//	      --> each slot's bucket, written once             Table.NewMerger
//
// The spool's files are deleted one by one while buckets are written from them. So an import into a
// new table never needs much more space than the result, and an import that replaces every row of a
// table needs twice the table's space. If there is less free space, the import is done in rounds
// (space.go).
//
// A partition has all keys with certain bits in their hash, hence it is a set of whole slots. The
// new bucket of a slot consists of the imported rows of the slot, the rows of its old bucket, and
// its dirty rows in the cache. A small import, up to Plan.SmallRows, instead pulls the rows through
// the cache and overwrites them.
//
// The memory for a large import is borrowed from the cache.
package bulk
