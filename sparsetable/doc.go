// Package sparsetable keeps the rows of an embedding table, hundreds of
// millions of them, under 64-bit keys (AIBox §4).
//
// A caller pulls the rows of a pass, which pins them in memory, updates them
// in place, mini-batch after mini-batch, and releases them. Rows come into
// being when they are first pulled, initialized from their key alone, so the
// order of creation leaves no trace. Open returns a Table; Options.Kind says how
// the rows are kept:
//
//	"memory"   all rows in memory: for tables that fit, and the oracle that the
//	           other kind is compared with
//	"ssd"      rows on SSDs, those in use and those likely to be in memory,
//	           within a hard budget
//
// Both give the same rows, bit for bit, whatever the budget and the timing.
// Package tabletest holds the suite that all kinds must pass. Their files
// differ; KindIn tells which kind a directory holds.
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
// # Snapshots of kind "memory"
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
//
// # Kind "ssd"
//
//	key --hash--> cache (internal/rowcache)                           memory
//	     |        rows that are pinned, dirty or likely to be pulled
//	     |        again; 20 bytes a row beside its words
//	     |
//	     +------> slot (internal/slots)
//	              +------------+--------+--------------+
//	              | location 8 | rows 2 | Bloom filter |   n slots, linear
//	              +-----|------+--------+--------------+   hashing
//	------------------- | ---------------------------------------------------
//	                    v                                             SSDs
//	dir/T-F.bucket   | header | bucket | bucket | …  (internal/bucketfile)
//	dir/T-X.delta    rows that were dirty when a snapshot was fixed
//	dir/catalog/     snapshots and pages of the index (internal/catalog)
//
// (T is the table's number, F the file's, X the delta's; with several
// directories each has bucket files, the first the rest.) The formats are in
// the internal packages' documentation, that of the delta file in ssd_delta.go.
//
// A key's hash names its slot; all rows of a slot lie in one bucket, a record of
// a few hundred to a few thousand bytes with a checksum, sized so that most are
// read in one block of 4096 bytes. So memory holds nothing per key but the bits
// of a filter, which spare most of the reads for keys that were never there
// (none where filters would take too much of the budget). The table has no
// capacity: slots are split one at a time as rows come.
//
// Bucket files are appended to in large writes that bypass the page cache
// (internal/blockio) and never changed. A rewritten slot leaves its old bucket
// behind, dead. A file without live buckets is deleted, unless a snapshot holds
// it; one with few is emptied in the background once all files take more than
// SSDOptions.MaxSpaceAmplification times what is in use.
//
// # Life of a row
//
//	Pull: in the cache ------------------------------------> pinned
//	      not there, the filter says no: made by Init -----> pinned
//	      not there, the filter says maybe: bucket is read,
//	        one read however many keys want it ------------> pinned
//
//	pinned --Release--> idle, dirty or clean --victim, clean--> only in its bucket
//	   ^                  |       ^    |
//	   +-------Pull-------+       |    +--victim, dirty: its slot is rewritten,
//	                              +-------with all dirty rows of that slot
//
// SSDOptions.CachePolicy says which idle rows leave first; Announce tells the
// policy "lookahead" what will be pulled. Neither has a bearing on what rows
// hold. A background writer keeps a small part of the cache free; a Pull that
// finds none does the work itself.
//
// # Snapshots and recovery of kind "ssd"
//
// Snapshot fixes, at one instant, the index with the bucket files that it points
// into, and the set of dirty rows; pinned rows count as dirty. It copies the
// pinned ones into the delta file before it returns. Then the training goes on
// and a goroutine writes: the index pages that changed since the last snapshot,
// the other dirty rows (whoever is about to pin or drop one of them saves it
// first), the buckets that are still in buffers. When all of that is durable,
// one synced edit of the catalog commits it. Bucket files are shared: a
// snapshot costs the dirty rows and the changed pages.
//
//	delta file durable ┐
//	buckets durable    ├─> catalog: one atomic edit -> Wait returns
//	pages written      ┘
//
// Open reads the catalog's pages into the index and the delta file into the
// cache, no bucket. It deletes the bucket and delta files that no snapshot has.
// So after a crash at any instruction the table is the last committed snapshot,
// and rows that were dirty then are in the cache again. Every bucket, delta
// block and page has a checksum, verified whenever it is read; damage is a
// *CorruptionError, reported when the damaged part is needed, which for a
// bucket is not at Open.
//
// # Budget of kind "ssd"
//
// Options.MemoryBytes is divided once, when the table is opened (ssd_plan.go):
//
//	buffers     three append buffers a directory, two delta blocks, a scan's
//	            buffer, reads in flight (a sixteenth of the budget, 1 MiB at
//	            least)
//	fixed       the catalog's database and scratch, 8.5 MiB
//	index       what it takes now, and room to grow
//	cache       the rest
//
// What grows later, the index and the lists of pinned sets, is taken from the
// cache, which shrinks. Pinned rows cannot leave: when those of the passes in
// flight do not fit, Pull returns ErrBudget with the smallest budget that
// works.
//
// # Concurrency
//
// Every method of a Table may be called from any goroutine. What rows hold is
// guarded by the caller: one trainer updates pinned rows, while Pull for later
// passes, Snapshot and Release run beside it. In both kinds, whatever may create
// or remove rows (Pull, Import, Expire) excludes one another, and a Snapshot
// waits for the one before it.
//
// In kind "memory" one mutex guards the index, the slabs' administration and the list of pinned
// sets. It is taken for a thousand keys at a time, so that a large Pull on the
// prefetching goroutine does not hold up Release or Snapshot on the training
// one.
//
// Kind "ssd" has a background writer, a goroutine per snapshot until it is
// written, and those of its parts (one per directory that writes, one per
// directory, or a pool, that reads); Close waits for all. Its locks, in the
// order in which they are taken, outermost first:
//
//	changing   a Pull until its rows are pinned, Import, Expire, Scan
//	saving     a snapshot until it is written; Import and Expire
//	rewrite    who writes buckets, splits slots or lets rows go: the background
//	           writer a batch at a time, a Pull without room, Snapshot for the
//	           instant at which it fixes the state
//	mu         pinned sets and counters
//	indexMu    readers: Pull, for a batch of keys; writer: who holds rewrite
//
// A Pull reads buckets under none but changing, many at a time. Training takes
// none, Release mu and the cache's own. Type ssd says why a
// Pull, which looks into the cache and then into the index, cannot miss a row
// on its way from the one to the other.
//
// # Limits of kind "ssd"
//
//   - Rows are float32. All rows that passes in flight have pinned must fit the
//     cache.
//   - Under a budget so small that most victims are dirty, every Pull waits for
//     slots to be rewritten, and a slot is rewritten for few rows.
//   - A Scan makes Pulls wait until it ends.
//   - Rows that were clean when a snapshot was taken are not in the cache after
//     Open. They come back as they are pulled.
//   - One process may have a table open.
//   - If the end of the catalog's manifest is damaged, that cannot be told from
//     a crash while it was written: the snapshots committed last seem never to
//     have been. Open then takes an older one, without any (and without
//     MustExist) an empty table, and deletes the files that it does not have.
//     With Options.SnapshotID it returns ErrNoSnapshot and keeps the rows' files:
//     callers that know the id should give it.
package sparsetable
