// Package memory is the kind of table that has all rows in memory. Package sparsetable explains
// what the kinds have in common, and its interface Table says what the methods do.
//
//	     key --hash--> tag (32 bits)
//	                     |
//	index                v                       slabs
//	+---------+---------+---------+---------+    +-------------------------+
//	| segment | segment | segment |   ...   |    | rows   2^shift x Words  |
//	| tag,ref |         |         |         |    | keys   2^shift          |
//	+---------+---------+---------+---------+    | marks  2^shift          |
//	     ref = slab number << shift | row   ---> +-------------------------+
//
// Rows live in slabs outside the garbage collector's heap (slabs.go) and never
// move, so a pinned row is a 32-bit reference. Reference 0 is a row of zeros,
// the one that lookups of unknown keys share. The index (index.go) grows by
// one small segment at a time, by linear hashing, so its size is a function of
// the number of rows alone and growing it never stalls a pull.
//
// Options.MemoryBytes bounds everything the table holds: rows, index, pinned
// sets and the copies of rows that a snapshot makes. The room for a snapshot's own
// bookkeeping (5 bytes a row) is reserved from the start, so a table that fits can always be saved.
// New rows are refused before the process would be killed for lack of memory (room.go).
//
// # Snapshots
//
// Snapshot returns when the present state is fixed, not when it is written. A row can only change
// while it is pinned. So Snapshot copies the rows that are pinned at that moment, and until the
// snapshot is written, Pull copies each row that it pins for the first time. The background writer
// reads all other rows in place. Training waits only while the pinned rows are copied. When the
// memory budget, or the machine, has no room for the copies that Snapshot makes, Snapshot writes
// everything before it returns; when it has no room for those that Pull makes, Pull waits until the
// snapshot is written.
//
// A snapshot is one file, snapshot-<id>.rows, all integers little-endian:
//
//	header   magic     8 bytes  "aiboxrow"
//	         version   uint32   1 with float32 values, 2 with others
//	         values    uint32   valueDim, and the value format in the upper 8 bits
//	         stateDim  uint32
//	         recordLen uint32
//	         id        uint64   that of the file name
//	         record    recordLen bytes, the caller's
//	         crc       uint32   CRC-32C of everything before
//	block    rows      uint32   n, 1 … blockRows
//	         n times   key uint64, row Words x uint32 (see Layout)
//	         crc       uint32   CRC-32C of the block before it
//	…        every block but the last holds blockRows rows
//	footer   rows      uint32   0
//	         total     uint64   rows in the file
//	         crc       uint32   CRC-32C of the footer before it
//
// Keys ascend strictly, so equal tables give equal files, apart from id and
// record. blockRows is the number of rows that fit 256 KiB, at least 1. The
// file is written under a temporary name, synced, renamed, and the directory
// synced; a crash at any instruction leaves the earlier snapshots as they were.
// Opening checks everything; damage is a *CorruptionError.
//
// # Concurrency
//
// One mutex guards the index, the slabs' bookkeeping and the list of pinned sets. The index and the
// places of rows change only while rows are created or removed, so a Pull, which excludes that,
// looks up its keys on all threads without the mutex. It holds the mutex for a thousand keys at a
// time where it creates rows or copies them for a snapshot, so that a large Pull on the prefetching
// goroutine does not delay Release or Snapshot on the training one.
package memory
