// Package bulk imports rows into a table on SSD: few of them through the table's cache, and
// many by two passes of sequential I/O.
//
//	source --> partitions by hash --> spool files          internal/spool
//	                                      |
//	            slots grown for all rows  |                Table.Grow
//	                                      v
//	spool --> a partition in memory, sorted by slot        internal/spool
//	      --> each slot's bucket, written once             Table.NewMerger
//
// The spool's files are deleted one after the other while buckets are written. So a
// new table needs little more space at any time than in the end, and a table of
// which every row is imported again needs twice its space. Where there is not as
// much, the import is done in rounds (space.go).
//
// A partition has all keys with certain bits in their hash, hence it is a set of
// whole slots. The new bucket of a slot is made of the imported rows of the slot,
// the rows of its old bucket, and its dirty rows in the cache. A small import, up
// to Plan.SmallRows, goes through the cache instead, as a Pull with updates
// does: the rows are pulled and overwritten.
//
// The memory for a large import is borrowed from the cache.
package bulk
