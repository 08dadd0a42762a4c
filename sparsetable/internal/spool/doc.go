// Package spool keeps the rows of an import on SSD, in partitions by the hashes of their keys,
// and loads them again, sorted by slot.
//
//	rows -> partitions by hash -> spool files        Spool.Add, Finish
//	spool -> units, loaded and sorted by slot         Loader
//
// The rows of a partition have certain bits of their keys' hashes in common. A spool is
// deleted at the end of the import; Store.Remove deletes those that a crash left behind.
//
// Partitions are written in blocks, as they fill, so that writes are large. Some partitions
// form a group, which has one file in each directory. As soon as all partitions of a group
// are done with, its files are deleted and their space is free. The blocks of a group are
// spread over the directories in turn. A block has this form, with little-endian integers:
//
//	0   magic      "ASP1"
//	4   crc        uint32, CRC-32C of everything behind it, except padding
//	8   table      uint64
//	16  spool      uint64, random, the one in its name
//	24  partition  uint32
//	28  number     uint32, in its group
//	32  rows       uint32
//	36  0          uint32
//	40  rows times: key uint64, row
//	…   padding to 4096 bytes
//
// A Unit is the part of a spool that is merged with a table at once: a partition, or several of
// them where the table has fewer slots than the spool has partitions. A Loader loads each unit
// while the one before it is merged, into areas that hold rows sorted by slot.
//
// The caller provides all memory: buffers for writing a spool, areas for reading it.
package spool
