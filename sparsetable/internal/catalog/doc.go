// Package catalog stores the durable metadata of a table on SSD: its snapshots, and for
// every snapshot the location of each slot's bucket.
//
// It is a Pebble database in a directory of its own. All keys are big-endian:
//
//	'a'                          the Format, as JSON
//	'p' page uint32, id uint64   a page of the index, as snapshot id wrote it
//	's' id uint64                a snapshot's record (see codec.go)
//	'z'                          the highest id ever given, uint64
//
// # Pages
//
// The index is divided into pages (package slots), and a snapshot writes only the pages
// that changed since the snapshot before. Its record says for every page, in a byte or
// two, which snapshot's version of the page it uses:
//
//	page         0    1    2    3
//	snapshot 5   5    5    5              p0@5 p1@5 p2@5
//	snapshot 6   5    6    5    6              p1@6      p3@6
//	snapshot 9   5    6    9    6                   p2@9
//
// A version that no snapshot uses is garbage. Dropping a snapshot deletes the versions that only it
// used, except those on which the open table is based: the table's next snapshot uses the pages
// that have not changed since its last snapshot, even if that was dropped. If the process crashes
// before these are deleted, Load finds them and the next commit deletes them.
//
// # Commit
//
// Nothing goes through Pebble's write-ahead log and memtable. A commit writes one
// sorted table (SSTable) with the deletions of garbage, the pages in ascending order as
// the caller encodes them, and the record. The sorted table is synced and then
// ingested, which is one synced edit of Pebble's manifest. So a commit is atomic and
// durable, each byte is written once, and no more than a block of it is ever in memory.
// If anything fails before the edit (because the disk is full, say), the catalog is as
// it was and can still be used. A crash before the edit leaves a file *.tmp, which Open
// removes.
//
// Pebble's own compactions are switched off. Instead, after a commit or a drop, the
// catalog compacts everything if half of it is garbage or if eight tables overlap. So it
// takes about twice the size of what the snapshots hold, and writes nothing in the
// background.
//
// # Damage
//
// Blocks and the manifest's edits have checksums, but a damaged edit at the manifest's
// end looks like one that a crash interrupted. So a small file HEAD says which snapshots
// there must be (head.go). Open first opens the database for reading only and compares
// it with HEAD. If they differ it changes nothing and returns a *CorruptionError.
//
// # Failures
//
// When Pebble cannot write its manifest it calls Logger.Fatalf, which must not return,
// and when it cannot sync a directory it panics. In both cases it is unknown what is on
// disk. The catalog then blocks the goroutine concerned forever, fails the operation and all later
// ones with ErrFailed, and leaves the database open, which takes memory and file descriptors until
// the process ends. Close releases the lock of the directory. The table in memory is unharmed;
// opening the catalog again, in this process or another one, finds the last committed snapshot.
//
// A process that writes locks the file LOCK exclusively; processes that read share the
// lock (lock.go).
//
// # Concurrency
//
// All methods may be called from any goroutine; a mutex lets one of them run at a time.
// While one Commit is under way, snapshots may be dropped and listed. Load must not be
// called then.
package catalog
