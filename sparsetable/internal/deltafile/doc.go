// Package deltafile reads and writes delta files: rows that a table had in memory when a
// snapshot was fixed.
//
// A delta file is written by a snapshot; later snapshots may refer to it, too. It first holds the
// dirty rows, whose values are in no bucket at that time. Then it holds the rows of the cache that
// are used most, although buckets have them too: a table opened from the snapshot starts with them
// in the cache. The file consists of blocks of Store.BlockBytes, of which the last may be shorter;
// each block takes a whole number of the table's units. Integers are little-endian:
//
//	0   magic     "ADL2"
//	4   crc       uint32, CRC-32C of everything behind it, padding included
//	8   table     uint64
//	16  file      uint64, random, the one in its name
//	24  block     uint32, its number
//	28  rows      uint32
//	32  kind      uint32: 0 its rows are dirty, 1 clean
//	36  dir       uint32, the number of the directory that it was written for
//	40  rows times: key uint64, info uint32, 0 uint32, row
//	…   zeros
//
// A snapshot of a table with several directories writes one file into each. They share the random
// number; the number of the directory is part of the file's name and of each block.
//
// info is twice the row's use count, plus one if the row's bucket has a version of it. Dirty blocks
// come first; the owner of the file records how many bytes and rows they have.
//
// The package knows neither tables nor snapshots: a Store says where the files of one table
// are and what their rows look like.
package deltafile
