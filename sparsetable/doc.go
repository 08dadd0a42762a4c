// Package sparsetable keeps the rows of an embedding table, hundreds of
// millions of them, under 64-bit keys (AIBox §4).
//
// A caller pulls the rows of a pass, which pins them in memory, updates them
// in place, mini-batch after mini-batch, and releases them. Rows come into
// being when they are first pulled, initialized from their key alone, so the
// order of creation leaves no trace. Open returns a Table; its Kind says how
// the rows are kept. Kind "memory" keeps all of them in memory. It is the
// reference for every other kind: package tabletest holds the suite that all
// must pass.
//
// # Kind "memory"
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
// sets and what a snapshot keeps aside. The room that a snapshot's own
// bookkeeping takes (5 bytes a row) is set aside from the start, so a table
// that fits can always be saved.
//
// # Concurrency
//
// One mutex guards the index, the slabs' administration and the list of pinned
// sets. It is taken for a thousand keys at a time, so that a large Pull on the
// prefetching goroutine does not hold up Release or Snapshot on the training
// one. Pulls that may create rows, Import and Expire exclude one another. What
// rows hold is guarded by the caller.
//
// # Snapshots
//
// Snapshot returns when the present state is fixed, not when it is written. A
// row can only change while it is pinned. So Snapshot copies the rows that are
// pinned at that moment, and until the snapshot is written, Pull copies each
// row that it pins for the first time. Everything else the background writer
// reads where it lies. Training stalls for one copy of the pinned rows. When
// the memory budget has no room for the copies, Snapshot writes everything
// before it returns, and a Pull waits until the snapshot under way is written.
//
// A snapshot is one file, snapshot-<id>.rows, all integers little-endian:
//
//	header   magic     8 bytes  "aiboxrow"
//	         version   uint32   1
//	         valueDim  uint32
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
// Keys ascend strictly, so equal tables give equal files (but for id and
// record). blockRows is the number of rows that fit 256 KiB, at least 1. The
// file is written under a temporary name, synced, renamed, and the directory
// synced; a crash at any instruction leaves the earlier snapshots as they were.
// Opening checks everything; damage is a *CorruptionError.
package sparsetable
