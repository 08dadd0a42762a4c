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
// # Rows
//
// Layout is the shape of a table's rows: values, optimizer state, statistics
// (layout.go). Values are float32, or 16 bits wide (Layout.Format): two to a word,
// so the cache, bucket files and snapshots hold half the bytes for them, and all
// but who reads and writes values sees words. Training loads them as float32
// (LoadValues), updates those and stores them (StoreValues), rounded up or down by
// chance so that the mean is right: plain rounding would swallow steps smaller
// than half of what a format can tell apart. The random bits are a function of
// seed, update, key and position, never of what was in memory. State and
// statistics are float32 always. Both kinds record the layout and refuse another
// (*LayoutError); the kinds give the same rows in every format.
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
//	              +------------+--------------+
//	              | location 8 | Bloom filter |   n slots, linear
//	              +-----|------+--------------+   hashing
//	------------------- | ---------------------------------------------------
//	                    v                                             SSDs
//	dir/T-F.bucket   | header | bucket | bucket | …  (internal/bucketfile)
//	dir/T-X.delta    rows that were in memory when a snapshot was fixed
//	dir/T-S-G.spool  rows of an import under way (ssd_spool.go)
//	dir/catalog/     snapshots and pages of the index (internal/catalog)
//
// (T is the table's number, F the file's, X the delta's; with several
// directories each has bucket files, the first the rest.) The formats are in
// the internal packages' documentation, that of the delta file in ssd_delta.go.
//
// A key's hash names its slot; all rows of a slot lie in one bucket, a record of
// a few hundred to a few thousand bytes with a checksum. So memory holds nothing
// per key but the bits of a filter, which spare most of the reads for keys that
// were never there. The table has no capacity: slots are split one at a time as
// rows come, and merged when rows went.
//
// The devices are asked for the smallest unit that they read and write, 512 to
// 4096 bytes; without direct I/O it is 4096. Buckets take whole units. Where the
// unit is 512 they have 1.4 KiB on average, or 8 rows where that is more; where it
// is 4096, as many rows as three quarters of a block hold, so that most rows lie in
// a bucket of one block. Filters have about 10 bits a key. That is as long as both
// together take no more than two fifths of what index and cache share
// (ssd_shape.go). As the table grows beyond that, filters are halved, then dropped,
// then slots are no longer split: buckets grow to 4 KiB, and at a price to 16 KiB.
// Beyond that a Pull of new keys returns ErrBudget, with the smallest budget for so
// many rows; those that are there can still be pulled and trained.
// Of 20 million rows of 96 bytes, index and filters take 35 MiB under a budget
// of 256 MiB, 12 MiB without filters at 64 MiB, and at 16 MiB, where buckets
// have 36 rows, 4.3 MiB.
//
// Bucket files are appended to in large writes that bypass the page cache
// (internal/blockio) and never changed. A rewritten slot leaves its old bucket
// behind, dead. A file without live buckets is deleted, unless a snapshot holds
// it; one with few is emptied in the background once all files take more than
// SSDOptions.MaxSpaceAmplification times what is in use. In use is what compaction
// cannot win: whole units, with the padding of their last one, which is a sixth of
// them where the unit is 512 bytes and rows have 96, and a third where it is 4096.
// Stats.DiskPaddingBytes says how much that is, Stats.RowSpaceAmplification what a
// byte of a row takes with all of it.
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
//	   +-------Pull-------+       |    +--its slot is rewritten, with all dirty
//	                              +-------rows of that slot
//
// A slot is rewritten, by the background writer, in one of four ways, the
// cheapest first:
//
//	carried   a working set carries copies of the buckets that were read for it;
//	          when it is released, its rows are merged into them: no read
//	          (ssd_carry.go). In the steady state of a table larger than memory,
//	          where the rows to leave are those that were just read, that is
//	          nearly all
//	swept     slots with several new rows are written in order while the cache
//	          fills: one read for many rows, or none (ssd_sweep.go)
//	emptied   compaction takes dirty rows along with a bucket that it moves
//	evicted   a dirty row is next to leave: one read for one row
//
// SSDOptions.CachePolicy says which idle rows leave first; of those that are
// next to leave, clean ones go before dirty ones. Announce tells the policy
// "lookahead" what will be pulled, and their rows are read before that
// (ssd_prefetch.go). Where the announced passes need many buckets of the table,
// these are read in the order in which they lie, many with one read, and dirty rows
// are written on the way (ssd_elevator.go); where that does not pay, or the budget
// is small, what the next pass lacks is on its way while this one is pulled
// (ssd_direct.go). The table numbers announced passes itself, for as long as it is
// open; Lookahead says how many it wants to know of at present, and ForgetAnnounced
// withdraws those that do not come (ssd_announce.go). None of this has a bearing on
// what rows hold. The background writer keeps a small part of the cache free; a
// Pull that finds none drops clean rows, and only where there are none it writes.
//
// # Large imports and scans of kind "ssd"
//
// An Import of more rows than a sixteenth of the cache holds does not go through
// the cache. It writes the rows to spool files, in up to 512 partitions by hash,
// and estimates on the way how many keys are new. Then the index grows to what
// they want, at once, which costs nothing where slots have no bucket. Each
// partition is a set of whole slots: it is read, sorted by slot, and the bucket
// of each slot is written once, with the rows that the table had of it.
//
//	source -> partitions -> spool files -> sorted by slot -> buckets
//	          write once                   read once         write once
//
// The buckets that the slots of a partition had are read ahead, many at a time.
// The memory is taken from the cache for so long, half of it at most, 160 MiB at
// most; where that does not hold a partition, it is spooled again. The files of
// the spool are deleted as buckets are made of them: a new table needs little more
// space than in the end, one that exists what it has and the rows again. Where the
// directories have no room for a spool of all rows and its buckets, it is done
// in rounds, each of which may write every bucket anew. Open deletes the spools of
// a process that ended.
//
// Scan reads bucket files from end to end and passes over dead buckets. A bit
// for each slot says whether it was seen; those whose bucket was moved in the
// meantime, or is in a buffer or mostly dead file, are read at the end.
//
// # Snapshots and recovery of kind "ssd"
//
// Snapshot fixes, at one instant, the index with the bucket files that it points
// into, and the set of dirty rows; pinned rows count as dirty. That takes no
// longer for many dirty rows than for few: turning one bit around makes all of
// them old (internal/rowcache/save.go), and what is old and dirty has yet to be
// saved. Only the pinned rows are copied before Snapshot returns, into blocks of
// the delta file that a goroutine writes; it waits for a write only where a
// thirty-second of the budget does not hold them. Then the training goes on and
// two goroutines write: the index pages that changed since the last snapshot,
// the other dirty rows (whoever is about to pin or drop one of them saves it
// first), the clean rows used most, within SSDOptions.HotBytes, and the buckets
// that are still in buffers. When all of that is durable, one synced edit of the
// catalog commits it. Bucket files are shared: a snapshot costs the dirty rows,
// the changed pages, and those clean rows.
//
//	delta file durable ┐
//	buckets durable    ├─> catalog: one atomic edit -> Wait returns
//	pages written      ┘
//
// Open reads the catalog's pages into the index and the dirty rows of the delta
// file into the cache, no bucket. It deletes the bucket and delta files that no
// snapshot has. So after a crash at any instruction the table is the last
// committed snapshot. Both parts of a delta file begin with the rows used most.
// Dirty rows may be newer than their buckets, so nothing can be done before all
// are there: Open waits for them, which takes as long as reading them in one go,
// or longer where a smaller budget sends some to their buckets. A table that is
// opened for reading only has no buckets to send them to: it notes their places in
// the delta file and reads them from there when they are pulled (ssd_outside.go),
// however many they are. The clean rows
// come afterwards, in the background, in turns with Pulls, until the cache has
// no more room; one whose slot was written since is left out
// (ssd_restore_hot.go). Flush before Snapshot leaves no dirty rows. Every bucket,
// delta block and page has a checksum, verified whenever it is read; damage is a
// *CorruptionError, reported when the damaged part is needed, which for a bucket
// or a clean row is not at Open. Where the catalog has lost a snapshot that was
// committed, Open says so and changes nothing.
//
// # Budget of kind "ssd"
//
// Options.MemoryBytes is divided when the table is opened (ssd_plan.go):
//
//	buffers     three append buffers a directory, blocks of a delta file, a
//	            scan's buffer, reads in flight (a sixteenth of the budget, 768
//	            KiB to 8 MiB)
//	fixed       the catalog's database and scratch, 2.3 MiB
//	elevator    its reads, a thirty-second of the budget, 16 MiB at most; with the
//	            policy "lookahead"
//	spare       a hundredth, 32 KiB at least: for what needs memory while pinned
//	            rows, which cannot move, keep the cache from giving some back
//	carry       buckets that working sets carry, an eighth of what is left, up to
//	            a quarter under budgets of less than 200 MiB
//	index       two fifths of the rest, at most
//	cache       what the index leaves
//
// An empty table needs 3.8 MiB with the default policy. What grows later, the
// index and the lists of pinned sets, and what an Import or a Scan works with, is
// taken from the cache, which shrinks, and grows again when filters are dropped or
// slots merged. Filters also make way for pinned rows. Those cannot leave: when
// those of the passes in flight do not fit, Pull waits for a snapshot being
// written, which takes memory, too, and then returns ErrBudget with the smallest
// budget that works.
//
// # Concurrency
//
// Every method of a Table may be called from any goroutine. What rows hold is
// guarded by the caller: one trainer updates pinned rows, while Pull for later
// passes, Snapshot and Release run beside it. In both kinds, whatever may create
// or remove rows (Pull, Import, Expire) excludes one another, and a Snapshot
// waits for the one before it.
//
// In kind "memory" one mutex guards the index, the slabs' administration and the
// list of pinned sets. It is taken for a thousand keys at a time, so that a large
// Pull on the prefetching goroutine does not hold up Release or Snapshot on the
// training one.
//
// Kind "ssd" has a background writer, one goroutine that reads ahead, two per
// snapshot until it is written, one that restores rows after Open, and those of
// its parts (one per directory that writes, one per directory, or a pool, that
// reads); Close waits for all. Its locks, in the order in which they are taken,
// outermost first:
//
//	announcing  who announces passes, or withdraws them
//	changing    who inserts rows: a Pull until its rows are pinned, a turn of
//	            the elevator, Import, Expire; and Scan, so that nobody does
//	saving      a snapshot until it is written; Import and Expire
//	compacting  who empties a file
//	rewrite     who writes buckets, splits or merges slots: the background writer
//	            a batch at a time, a Pull that finds no clean rows to drop,
//	            Snapshot for the instant at which it fixes the state
//	moving      who writes rows of the cache to a bucket, until the index has it;
//	            who drops clean rows
//	mu          pinned sets and counters
//	delta.mu    the block of a snapshot's file that is being filled
//	indexMu     readers: Pull, for a batch of keys; writer: who holds rewrite
//	            (then those of the cache and of the bucket files)
//
// A Pull reads buckets under none but changing, many at a time. Training takes
// none, Release mu and the cache's own. Type ssd says why a Pull, which looks
// into the cache and then into the index, cannot miss a row on its way from the
// one to the other.
//
// # Limits of kind "ssd"
//
//   - All rows that passes in flight have pinned must fit the cache.
//   - Under a budget so small that the buckets of a pass cannot be carried, rows
//     that leave cost a read each, for which Pulls wait.
//   - A Scan makes Pulls wait until it ends.
//   - Clean rows beyond SSDOptions.HotBytes are not in the cache after Open, nor
//     are those whose slot was written before their turn. They come back as they
//     are pulled.
//   - Open takes longer with more dirty rows, and much longer with a budget that
//     does not hold them. A table opened for reading only must hold 16.6 bytes for
//     each of them.
//   - One process may have a table open to write it, or several to read it.
package sparsetable
