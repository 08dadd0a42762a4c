// Package catalog keeps what must survive of a table on SSD: the snapshots, and
// per snapshot where every slot's bucket lies.
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
// The index is cut into pages (package slots), and a snapshot writes only those
// that changed since the one before. Its record says for every page which
// snapshot's version it uses, in a byte or two a page:
//
//	page         0    1    2    3
//	snapshot 5   5    5    5              p0@5 p1@5 p2@5
//	snapshot 6   5    6    5    6              p1@6      p3@6
//	snapshot 9   5    6    9    6                   p2@9
//
// A version that no snapshot uses is garbage. Dropping a snapshot deletes what
// only it used, but for what the table now at work builds upon: its next
// snapshot uses the pages that have not changed since the last one, dropped or
// not. What a crash leaves of those, Load finds and the next commit deletes.
//
// # Commit
//
// Nothing goes through Pebble's write-ahead log and memtable. A commit writes
// one sorted table: deletions of garbage, pages in ascending order as the caller
// encodes them, the record. It is synced and then ingested, which is one synced
// edit of Pebble's manifest. So a commit is atomic and durable; each byte is
// written once; no more than a block of it is ever in memory; and whatever fails
// before the edit (a full disk, say) leaves the catalog as it was and at work.
// A crash before the edit leaves a file *.tmp, which Open removes.
//
// Pebble's own compactions are off: after a commit or a drop the catalog
// compacts everything when half of it is garbage or eight tables overlap, so it
// takes about twice what the snapshots hold, and writes nothing of its own
// accord.
//
// # Damage
//
// Blocks and the manifest's edits have checksums, but an edit that is damaged at
// the manifest's end looks like one that a crash interrupted. So a small file
// HEAD says which snapshots there must be (head.go). Open compares the database
// with it while it is opened for reading only, and changes nothing where they
// differ: that is a *CorruptionError.
//
// # Failures
//
// Pebble calls Logger.Fatalf, which must not return, when its manifest cannot be
// written, and panics when a directory cannot be synced: then nobody can tell
// what is on disk. The catalog parks the goroutine concerned for good, fails the operation and all later ones with ErrFailed,
// and leaves the database open, its directory locked. The table in memory is
// unharmed; a new process opens the last committed snapshot.
//
// A lock on the file LOCK keeps a writer from all others; readers share it (lock.go).
//
// # Concurrency
//
// All methods may be called from any goroutine; a mutex lets one work at a time.
// One Commit may be under way, and drops, loads and lists beside it.
package catalog
