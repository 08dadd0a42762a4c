// Package ssd is the kind of table that keeps its rows on SSDs, and those in use in memory, within
// a hard budget. Package sparsetable explains what the kinds have in common, and its interface
// Table says what the methods do.
//
//	key --hash--> cache (internal/rowcache)                           memory
//	     |        rows that are pinned, dirty or likely to be pulled
//	     |        again; 20 bytes a row besides its words
//	     |
//	     +------> slot (internal/slots)
//	              +------------+--------------+
//	              | location 8 | Bloom filter |   n slots, linear
//	              +-----|------+--------------+   hashing
//	------------------- | ---------------------------------------------------
//	                    v                                             SSDs
//	dir/T-F-I.bucket | header | bucket | bucket | …  (internal/bucketfile)
//	dir/T-X-D.delta  rows that were in memory when a snapshot was fixed
//	dir/T-S-G.spool  rows of an import under way (internal/spool)
//	dir/catalog/     snapshots and pages of the index (internal/catalog)
//	dir/T.catalog/   a copy of that, in each further directory (internal/catalogcopy)
//
// T is the table's number, F the file's, X the delta's. D is the number of the directory; it is
// left out for the first directory, 0. If there are several directories, each has bucket files,
// delta files and the catalog or a copy of it; the first has the rest. The formats are in the
// internal packages' documentation.
//
// A key's hash determines its slot. The hash function differs from table to table, so that keys
// that come in the order of one table's files are spread evenly in all other tables (slots.Hasher).
// All rows of a slot lie in one bucket, a record of a few hundred to a few thousand bytes with a
// checksum. So memory holds nothing per key but a few bits of a filter. The filters avoid most of
// the reads for keys that the table does not have. The table has no fixed capacity: slots are split
// one at a time as rows are added, and merged after rows were dropped.
//
// The table reads and writes in units of the devices' smallest block, 512 to 4096
// bytes; without direct I/O the unit is 4096 bytes. A bucket takes a whole number of
// units. With units of 512 bytes, a bucket has 1.4 KiB on average, or 8 rows where
// that is more. With units of 4096 bytes, it has as many rows as fill three quarters
// of a unit, so that most rows lie in a bucket of one unit. Filters have about 10 bits
// a key. These sizes hold as long as the slots, filters included, take no more than
// two fifths of the memory that index and cache share (internal/plan). When the table grows beyond
// that, the filters are halved, and later dropped. After that, slots are no longer split, so
// buckets grow. Up to 4 KiB that costs only some speed; up to 16 KiB a read takes twice the time.
// Beyond that a Pull of new keys returns ErrBudget, which names the smallest budget for that many
// rows; rows that the table has can still be pulled and trained. For 20 million rows of 96 bytes,
// index and filters take 35 MiB under a budget of 256 MiB, 12 MiB without filters under 64 MiB, and
// 4.3 MiB under 16 MiB, where a bucket has 36 rows.
//
// Bucket files are written by appending only, in large writes that bypass the page cache
// (internal/blockio). When a slot is rewritten, its old bucket stays in its file and counts as
// dead. A file without live buckets is deleted, unless a snapshot holds it. A file with few live
// buckets is emptied in the background once the size of all files approaches
// SSDOptions.MaxSpaceAmplification times the bytes in use. Compaction starts early enough that the
// bytes written until the next check stay within the limit. If the limit leaves a small table less
// than 3.5 MiB of dead bytes a directory (32 MiB under a budget of 256 MiB or more), that much is
// allowed instead. The bytes in use are those that compaction cannot reclaim: all units of the live
// buckets, with the padding of each bucket's last unit. For rows of 96 bytes the padding is a sixth
// of them with units of 512 bytes, and a third with units of 4096. Stats.DiskPaddingBytes is the
// size of the padding. Stats.RowSpaceAmplification is the number of bytes on disk for a byte of a
// row, padding and dead buckets included.
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
//	carried   A working set keeps copies of the buckets that were read for it (it
//	          carries them). When it is released, its rows are merged into these
//	          copies, without another read (carry.go). In the steady state of
//	          a table larger than memory, the rows that leave the cache are mostly
//	          those that were just read, so nearly all slots are written this way.
//	swept     While the cache fills, slots with several new rows are written in
//	          order: one read for many rows, or none (sweep.go).
//	emptied   Compaction writes the dirty rows of a bucket that it moves with it.
//	evicted   A dirty row is next to leave the cache: one read for one row.
//
// SSDOptions.CachePolicy determines which idle rows leave first; of those that are next to leave,
// clean ones go before dirty ones. Announce tells the policy "lookahead" which keys will be pulled,
// so that their rows can be read ahead. Where the announced passes need many buckets of the table,
// the elevator reads these in the order in which they lie on the device, many with one read, and
// writes dirty rows on its way. Where that does not pay, or where the budget is small, the buckets
// that the next pass lacks are read while the present one is pulled (internal/elevator,
// announce.go). None of this affects what rows hold. The background writer keeps a small part of
// the cache free. A Pull that finds no free part drops clean rows; only where there are none does
// it write dirty ones itself.
//
// # Large imports and scans
//
// An Import of more rows than a sixteenth of the cache holds bypasses the cache. It writes the rows
// to spool files, in up to 512 partitions by hash, and meanwhile estimates how many keys are new.
// Then the index grows at once to the number of slots that these need, which costs nothing where
// slots have no bucket. Each partition is a set of whole slots: it is read and sorted by slot, and
// the bucket of each slot is written once, merged with the rows that it had before.
//
//	source -> partitions -> spool files -> sorted by slot -> buckets
//	          write once                   read once         write once
//
// The old buckets of a partition's slots are read ahead, many at a time. While the import runs, it
// takes its memory from the cache: at most half of the cache, and at most 160 MiB. A partition that
// does not fit this memory is divided into a spool of its own. The files of the spool are deleted
// while buckets are made from them, so a new table needs little more space during the import than
// after it; a table that has rows needs their space and that of the imported rows at the same time.
// Where the directories have no room for a spool of all rows and its buckets, the import is done in
// rounds, each of which may write every bucket anew. Open deletes the spools that an interrupted
// import left behind.
//
// Scan reads bucket files from end to end and skips dead buckets (internal/scan). It keeps a bit
// for each slot that it has seen. Slots whose bucket was moved in the meantime, is still in a
// buffer, or lies in a mostly dead file are read at the end.
//
// # Snapshots and recovery
//
// Snapshot fixes, at one instant, the index with the bucket files that it points into, and the set
// of dirty rows; pinned rows count as dirty. The time for that does not depend on the number of
// dirty rows: inverting one bit marks all of them as old (internal/rowcache/save.go), and a row
// that is old and dirty has yet to be saved. Only the pinned rows are copied before Snapshot
// returns, into blocks of the delta file that a goroutine writes. Snapshot waits for such a write
// only where the copies need more than a thirty-second of the budget, or the cache has filled its
// memory. Then training goes on, while goroutines of the snapshot write
//
//   - the index pages that changed since the last snapshot,
//   - the other dirty rows (a call that is about to pin or drop one of them saves it first),
//   - unless training goes on, the clean rows used most, within SSDOptions.HotBytes,
//   - the buckets that are still in buffers.
//
// When all of that is durable, one synced edit of the catalog commits it. Snapshots share bucket
// files, so a snapshot only adds the rows that became dirty or changed since the one before it, the
// changed pages, and those clean rows. For dirty rows that an earlier delta file has unchanged, the
// snapshot refers to that file.
//
// So a snapshot has a list of delta files, oldest first. For each of them, the catalog records how
// many of its bytes and rows are dirty. It also records which bucket files existed, and the lengths
// of those that were growing, at the instant f at which the file's rows were fixed. Of the dirty
// rows of a file, the snapshot has those for which
//
//	(1) no later file of the list has the key, and
//	(2) the bucket of the key's slot, in the index of the snapshot, was written before f,
//	    or there is none.
//
// With several directories, a snapshot writes a delta file into each at the same time. A row is in
// the file of the directory that has the bucket of its slot; if there is no bucket, the hash of the
// key decides. So the loss of a directory costs only the rows of its slots
// (internal/checkpoint/cover.go). A table that is opened with different directories than before
// writes all dirty rows with its next snapshot.
//
// The other rows have changed since, or are in their bucket. internal/checkpoint/list.go proves
// this rule. A snapshot writes all dirty rows, and refers to no earlier file, where the list would
// have more than two rows for each dirty row, where the last snapshot failed, and after Expire.
// Where the list has files of 64 instants, the next snapshot also writes the rows of the newest of
// these, and does not refer to them (internal/checkpoint/shorten.go). The clean rows are only those
// of the last files. A delta file is deleted when no snapshot refers to it and the next one will
// not.
//
//	delta file durable ┐
//	buckets durable    ├─> catalog: one atomic edit -> Wait returns
//	pages written      ┘
//
// With several directories, the copies of the catalog are brought up to date before Wait returns,
// and before the files of a dropped snapshot are deleted. A copy that cannot be written is
// reported; the table goes on.
//
// Open reads the catalog's pages into the index and the dirty rows of the delta files into the
// cache, the newest file first; it reads no bucket. It deletes the bucket and delta files that no
// snapshot refers to. So after a crash at any instruction the table is the last committed snapshot.
// Both parts of a delta file, that of the dirty rows and that of the clean rows, begin with the
// rows used most. A dirty row may be newer than its bucket, so no row can be used before all of
// them are in the cache. Open waits for them, which takes as long as reading them in sequence, or
// longer where the budget is smaller than before and some of them are written to their buckets
// instead (internal/restore). A table that is opened for reading only cannot write to buckets: it
// records where the dirty rows lie in the delta files and reads them from there when they are
// pulled (internal/outside), however many they are. The clean rows are restored afterwards, in the
// background, in turns with Pulls, until the cache is full; rows whose slot was written since are
// left out (internal/restore). A snapshot that is taken after Flush has no dirty rows. Every
// bucket, delta block and page has a checksum, verified whenever it is read. Damage is a
// *CorruptionError, reported when the damaged part is read; buckets and clean rows are not read by
// Open. Where the catalog has lost a snapshot that was committed, Open says so and changes nothing.
//
// # Files that arrive
//
// The bucket files of a snapshot that is being fetched from another machine may still lack bytes
// while the table is in use. SSDOptions.Source supplies those that are read (internal/tabledirs).
// It works between the bucket files and the device, so pulls, scans, compaction and verification
// are not aware of it. Everything else of the snapshot is complete when the table is opened. While
// one of the directories has a file called ARRIVING.json, the table cannot be opened, held, cloned
// or copied without such a source (ErrArriving).
//
// # Clones
//
// Clone makes an independent table from a snapshot of another one, in other directories of the same
// file systems (internal/transfer). It gives the new table hard links to the snapshot's bucket and
// delta files, which never change, and writes a catalog with the pages of the index. The file
// system counts the links, so tables need not know of each other: a file that one of them has
// emptied or dropped takes space until the last one has. The new table keeps the number and the
// hash of the original.
//
// # Budget
//
// Options.MemoryBytes is divided when the table is opened (internal/plan):
//
//	buffers     three append buffers a directory, blocks of a delta file, a
//	            scan's buffer, reads in flight (a sixteenth of the budget, 768
//	            KiB to 8 MiB)
//	fixed       the catalog's database and scratch memory, 2.3 MiB; of a table of many
//	            slots, also the lists that a snapshot will need
//	elevator    its reads, a thirty-second of the budget, 16 MiB at most; only
//	            with the policy "lookahead"
//	spare       a hundredth, 32 KiB at least, for requests that come while the
//	            cache cannot give memory back, because pinned rows cannot move
//	carry       the copies of buckets that working sets carry: an eighth of what
//	            is left, or up to a quarter under budgets of less than 200 MiB
//	index       two fifths of the rest, at most
//	cache       what the index leaves
//
// While a snapshot is being written, the pages of the index that change before they are written are
// copied within a sixty-fourth of the budget, for which rows leave the cache. When that is full,
// bucket writers wait (internal/checkpoint).
//
// An empty table needs 3.8 MiB with the default policy. The memory for what grows later (the index
// and the lists of pinned sets) and for an Import or a Scan is taken from the cache. The cache
// shrinks for it, and grows again when filters are dropped or slots merged. The filters are also
// given up where pinned rows need their memory. Pinned rows keep the cache from shrinking. Where
// this leaves no room for the index to grow, a caller that uses PullPatient is asked to release all
// of its rows once (crowded.go). Pinned rows cannot leave the cache. When those of the passes in
// flight do not fit, Pull first waits until a snapshot that is being written gives up its memory;
// then it returns ErrBudget with the smallest budget that works.
//
// Where the process cannot have that much memory, the cache and the carried buckets take less
// (scarce.go).
//
// # Concurrency
//
// The table has a background writer, one goroutine that reads ahead, one that writes a snapshot,
// one for each delta file that is being written, one that restores rows after Open, and those of
// its parts (one per directory that writes; one per directory, or a pool, that reads). Close waits
// for all of them. The locks, with what holds or guards them, in the order in which they are taken,
// outermost first:
//
//	announcing  held by calls that announce passes or withdraw them (internal/elevator)
//	changing    held by whatever inserts rows: a Pull until its rows are pinned, a
//	            turn of the elevator, Import, Expire; also by Scan, so that no row
//	            is inserted meanwhile
//	saving      held for a snapshot until it is written; by Import and Expire
//	compacting  held while a file is emptied
//	rewrite     held by whatever writes buckets, splits or merges slots: by the
//	            background writer for a batch at a time, by a Pull that finds no
//	            clean rows to drop, by Snapshot while it fixes the state
//	moving      held while rows of the cache are copied to a bucket, until the
//	            index points to it; also while clean rows are dropped. Its holders
//	            wait for a device only where files must be deleted to make room
//	sets        guards pinned sets and counters
//	passes      guards the list of announced passes (internal/elevator)
//	dump.mu     guards the block of a snapshot's file that is being filled
//	indexMu     a Pull holds it for reading, for a batch of keys; it is held for
//	            writing only by a holder of rewrite
//	            (then come the locks of the cache, of the bucket files, and of parts
//	            that hold theirs for an instant, such as the counter of calls)
//
// All threads of a Pull look into the cache while one of them holds its mutex. A Pull reads
// buckets, many at a time, while it holds only changing. Training takes no lock; Release takes sets
// and the mutex of the cache. The comment on Table says why a Pull, which looks into the cache and
// then into the index, cannot miss a row that is moving from the one to the other.
//
// # Where to read what
//
//	table                      its parts
//	options, index             what can be set; where the bucket of each slot lies
//	open*, identity, lost      how it is opened; restore, outside: the rows of a snapshot that
//	                           are outside of buckets; refill: replacements for lost rows
//	pull, fetch, insert,
//	duplicates                 a Pull until its Release (sets); pullroom: where rows do not fit
//	announce, carry            what is read ahead, and what becomes of the buckets read
//	rewrite*                   how a bucket is written; evict, sweep, compact: when
//	split, merge, reshape      the number of slots
//	budget, crowded, scarce    how the budget is divided while it runs
//	background                 the background writer
//	change, import*, scan      calls that go through many rows; so do flush and shrink
//	snapshot, stats, detail    what it says of itself; so do hold, verify and invariants
//
// # Limits
//
//   - A row is in only one directory. The slots are dealt out to the directories in turn, so each
//     has the buckets and delta rows of a part of all rows; all have the catalog or a copy of it.
//     When a directory is lost, Open refuses the table unless it is told to go on without the rows
//     that were there (SSDOptions.AllowLost, lost.go). A table that must survive the loss of an SSD
//     with all rows needs directories on mirrored devices, or copies of all of them made while
//     nobody writes the table.
//   - All rows that passes in flight have pinned must fit the cache.
//   - Under a budget so small that the buckets of a pass cannot be carried, each row
//     that leaves the cache costs a read, for which Pulls wait.
//   - A Scan makes Pulls wait until it ends.
//   - After Open, the cache lacks the clean rows that SSDOptions.HotBytes left out of
//     the snapshot, and those whose slot was written before they were restored. They
//     come back as they are pulled.
//   - Open takes longer with more dirty rows, and much longer with a budget that does
//     not hold them. A table opened for reading only needs up to 16.6 bytes of memory
//     for each of them.
//   - Either one process has a table open for writing, or several have it open for
//     reading.
package ssd
