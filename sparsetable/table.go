package sparsetable

import (
	"context"
	"errors"

	"aibox/internal/errkind"
)

// Table stores rows of one Layout under 64-bit keys. Every method may be
// called from any goroutine; what a WorkingSet's rows hold is guarded by the
// caller (one trainer updates rows in place, mini-batch after mini-batch).
type Table interface {
	// Layout is the shape of the rows.
	Layout() Layout

	// Pull brings the rows of keys into memory and pins them until the returned
	// working set is released (AIBox §4.3). keys[i] is position i of the working
	// set. keys should be unique: the positions of a key that comes several times
	// share one row, but each counts as a pulled key. Pull may run ahead of
	// training: a row that several working sets pin is one piece of memory, so
	// later passes see the updates of earlier ones. keys is not retained.
	//
	// PullCreate creates missing rows with Options.Init. PullLookup creates
	// nothing: positions without a trained row share a zero row that must not be
	// written, and Found returns false for them. PullLookup reads the counts of
	// rows, to tell trained ones from others, so it must not run while rows are
	// being updated.
	//
	// Errors: ctx's; *BudgetError when the pinned rows do not fit, which says how
	// many would fit; *CorruptionError; ErrReadOnly for PullCreate.
	Pull(ctx context.Context, keys []uint64, mode PullMode) (*WorkingSet, error)

	// Announce tells the table that the unique keys of one pass will be pulled
	// before long (BagPipe §3.2). Passes must be announced in the order in which
	// they will be pulled. The table itself numbers them; the numbers go up until
	// it is closed. An announcement is only a hint: no result depends on it.
	// Announce waits for nothing but other calls of Announce and ForgetAnnounced.
	// keys must stay as they are until the pass has been pulled or forgotten:
	// missing rows may be read ahead.
	Announce(keys []uint64)

	// ForgetAnnounced withdraws the announced passes that were not pulled. The
	// caller thereby says that they will not be pulled. When it returns, the table
	// no longer uses their keys and keeps nothing for them, and other passes may be
	// announced. It waits for a Pull under way.
	ForgetAnnounced()

	// Lookahead returns how many passes of that many unique keys, beyond the one to
	// be pulled next, the table can use announcements of at present. A caller
	// should announce that many passes ahead; announcing more gains nothing. 0
	// means that the table does not look ahead. Lookahead may be called before
	// every pass.
	Lookahead(keys int) (passes int)

	// Scan calls fn for every trained row, in no particular order, in the state at
	// the time of the call. row is only valid until fn returns and must not be
	// written. Scan must not run while rows are being updated, nor beside Import or
	// Expire.
	Scan(ctx context.Context, fn func(key uint64, row []float32) error) error

	// Import inserts rows from src, replacing those of the same keys, until
	// src returns io.EOF; of equal keys the last one stays. Rows that were never
	// trained are skipped. When src fails, all rows that it gave before are
	// inserted. After any other error, the context's or a disk's, only some of them
	// are: rows is their number, and of a key that came several times an earlier
	// row may be the one that was inserted. Import must not run while working sets
	// are pinned (ErrPinned).
	Import(ctx context.Context, src RowSource) (rows int64, err error)

	// Expire drops the rows that rule condemns, as if they had never existed, and
	// returns their number. It must not run while working sets are pinned
	// (ErrPinned).
	Expire(ctx context.Context, rule ExpiryRule) (rows int64, err error)

	// Snapshot fixes the present state of the table together with record, the
	// caller's own bytes, and makes both durable, atomically, while the caller
	// goes on (OpenEmbedding §V-B). Call it between two mini-batches; updates
	// made after it returns are not part of the snapshot. ctx also ends the writing
	// that goes on in the background. A Snapshot waits for the one before it.
	Snapshot(ctx context.Context, record []byte) (*PendingSnapshot, error)

	// Snapshots lists the committed snapshots, oldest first. When some are damaged,
	// it returns the others together with an error that wraps a *CorruptionError.
	Snapshots() ([]SnapshotInfo, error)

	// DropSnapshot deletes a committed snapshot. The newest may be dropped too.
	DropSnapshot(id uint64) error

	// Stats returns counters since the table was opened, and present sizes.
	Stats() Stats

	// Close frees everything. It waits for a snapshot that is being written.
	// Changes since the last snapshot are lost. Working sets must have been
	// released; otherwise Close returns ErrPinned and frees nothing. A second Close
	// does nothing.
	Close() error
}

// PullMode says what Pull does with a key that has no row.
type PullMode uint8

const (
	PullCreate PullMode = iota // create the row
	PullLookup                 // refer to a shared zero row, create nothing

	// PullDivisible is added to a mode by a caller that can divide the keys among
	// several Pulls. A table on SSD whose memory holds the rows of all these keys only
	// without its Bloom filters then keeps the filters and returns a *BudgetError.
	PullDivisible PullMode = 1 << 7

	// PullAhead is added to PullCreate by a caller that pulls rows some time before it
	// changes them, and calls Begin of the set before it changes the first. A snapshot of a
	// table on SSD that is fixed in between need not copy them at once.
	PullAhead PullMode = 1 << 6

	// PullTrained is added to PullLookup by a caller that knows that no key has an untrained
	// row. The counts are not read then, so it may run while rows are being updated.
	PullTrained PullMode = 1 << 5
)

// RowSource yields rows for Import; Next returns io.EOF at the end. row is
// valid until the next call.
type RowSource interface {
	Next() (key uint64, row []float32, err error)
}

// ExpiryRule condemns a row when one of its active limits is passed. The zero
// value condemns nothing, and Expire then does not read a table on SSD.
type ExpiryRule struct {
	Today      uint32  // the present day
	UnseenDays uint32  // drop rows with Today-LastSeen > UnseenDays; 0: never
	MinShow    float32 // drop rows whose Show, decayed to Today, is below this; 0: never
	ShowDecay  float32 // factor per day by which Show decays; 0 means 1
}

// SnapshotInfo describes a committed snapshot.
type SnapshotInfo struct {
	ID     uint64
	Rows   int64
	Bytes  int64 // on disk, for this snapshot alone
	Layout Layout
	Record []byte // the caller's own bytes
}

// Stats are counters since open, and present sizes.
type Stats struct {
	Kind          string `json:"kind"`
	Rows          int64  `json:"rows"`           // trained rows and placeholders
	MemoryBytes   int64  `json:"memory_bytes"`   // everything the table holds in memory
	BudgetBytes   int64  `json:"budget_bytes"`   // its hard limit; 0: none
	Pulls         int64  `json:"pulls"`          // calls of Pull that succeeded
	Lookups       int64  `json:"lookups"`        // keys pulled
	Hits          int64  `json:"hits"`           // of those, found in memory
	Created       int64  `json:"created"`        // of those, created
	Missing       int64  `json:"missing"`        // of those, looked up and not there
	PinnedSets    int64  `json:"pinned_sets"`    // working sets not yet released
	Expired       int64  `json:"expired"`        // rows dropped by Expire
	Snapshots     int64  `json:"snapshots"`      // snapshots committed
	SnapshotBytes int64  `json:"snapshot_bytes"` // rows written for them, in bytes

	// The fields that follow are those of KindSSD alone.

	LookaheadPasses  int64 `json:"lookahead_passes,omitempty"`   // passes ahead that the table can use announcements of, at present
	AnnouncedPasses  int64 `json:"announced_passes,omitempty"`   // passes that were announced and neither pulled nor forgotten, at present
	AnnouncedKeys    int64 `json:"announced_keys,omitempty"`     // keys of announced passes that the table took note of
	NotAnnouncedKeys int64 `json:"not_announced_keys,omitempty"` // keys of announced passes that it had no room for

	Prefetched      int64 `json:"prefetched,omitempty"`       // rows read ahead for announced passes
	HitsInFlight    int64 `json:"hits_in_flight,omitempty"`   // hits on rows that other working sets had pinned
	HitsIdle        int64 `json:"hits_idle,omitempty"`        // hits on rows that were not pinned
	FilterNegatives int64 `json:"filter_negatives,omitempty"` // keys for which a filter made a read unnecessary
	FalsePositives  int64 `json:"false_positives,omitempty"`  // keys that were not in the bucket read for them
	BucketReads     int64 `json:"bucket_reads,omitempty"`     // buckets read by pulls
	DeviceReads     int64 `json:"device_reads,omitempty"`     // device reads for those buckets
	ReadBytes       int64 `json:"read_bytes,omitempty"`       // bytes of those reads

	CacheBytes int64 `json:"cache_bytes,omitempty"`
	CacheRows  int64 `json:"cache_rows,omitempty"`
	DirtyRows  int64 `json:"dirty_rows,omitempty"` // cached rows with updates that are in no bucket yet
	Evictions  int64 `json:"evictions,omitempty"`
	SavedEarly int64 `json:"saved_early,omitempty"` // rows that had to be saved for a snapshot before they changed or left the cache

	RestoredRows int64 `json:"restored_rows,omitempty"` // rows that opening the table brought back into memory from the snapshot

	Slots       int64 `json:"slots,omitempty"`
	IndexBytes  int64 `json:"index_bytes,omitempty"`  // of slots, filters included
	FilterBytes int64 `json:"filter_bytes,omitempty"` // of all slots
	// FilterBitsPerKey is what the filters have for each row in buckets. Where the
	// budget has no room for filters it is 0, and a key that is new costs a read.
	FilterBitsPerKey float64 `json:"filter_bits_per_key"`

	// MemoryBytes is the sum of CacheBytes, IndexBytes and the fields that follow.

	BufferBytes  int64 `json:"buffer_bytes,omitempty"`  // reserved for buckets and delta blocks being written or read
	CarryBytes   int64 `json:"carry_bytes,omitempty"`   // reserved for the copies of buckets that working sets carry
	CatalogBytes int64 `json:"catalog_bytes,omitempty"` // the catalog's database and lists of pages
	SetBytes     int64 `json:"set_bytes,omitempty"`     // lists of references of working sets, and scratch memory of Pull
	ScratchBytes int64 `json:"scratch_bytes,omitempty"` // reserved for rewriting buckets; also what an import or a scan has borrowed
	OutsideBytes int64 `json:"outside_bytes,omitempty"` // of a table opened for reading only: where the rows lie that the snapshot has outside of buckets

	FlushedRows      int64 `json:"flushed_rows,omitempty"`  // dirty rows written to buckets
	FlushedSlots     int64 `json:"flushed_slots,omitempty"` // buckets written for them
	Splits           int64 `json:"splits,omitempty"`        // of slots, as rows were added
	Merges           int64 `json:"merges,omitempty"`        // of slots, after rows were dropped
	RewriteReads     int64 `json:"rewrite_reads,omitempty"` // device reads for writing, and for scans
	RewriteReadBytes int64 `json:"rewrite_read_bytes,omitempty"`

	// WrittenBytes is all that was written to SSD: the sum of SnapshotBytes,
	// FlushedBytes, CompactedBytes, ImportedBytes and CatalogWrittenBytes.

	UpdatedRows         int64   `json:"updated_rows,omitempty"`        // rows pulled to be trained, once for each pass, and rows imported
	WriteAmplification  float64 `json:"write_amplification,omitempty"` // WrittenBytes divided by the bytes of those rows and their keys
	WrittenBytes        int64   `json:"written_bytes,omitempty"`
	FlushedBytes        int64   `json:"flushed_bytes,omitempty"`         // buckets written for dirty rows, or because slots were split or merged
	CompactedBytes      int64   `json:"compacted_bytes,omitempty"`       // buckets moved by compaction
	ImportedBytes       int64   `json:"imported_bytes,omitempty"`        // spools and buckets of imports that bypass the cache
	CatalogWrittenBytes int64   `json:"catalog_written_bytes,omitempty"` // pages of the index, and the catalog's own files

	// DiskBytes is what SSDOptions.DirBudgetBytes bounds in all directories: bucket
	// files, the rows that snapshots have outside of them, and the spool of an import.
	DiskBytes       int64 `json:"disk_bytes,omitempty"`
	DiskNeededBytes int64 `json:"disk_needed_bytes,omitempty"` // of bucket files, without those that only snapshots need
	DiskLiveBytes   int64 `json:"disk_live_bytes,omitempty"`   // of live buckets, in whole units of the device
	// DiskPaddingBytes is the part of DiskLiveBytes that holds no row: the headers
	// of buckets and the unused ends of their last units. Compaction cannot reclaim
	// it.
	DiskPaddingBytes int64 `json:"disk_padding_bytes,omitempty"`
	// SpaceAmplification is DiskNeededBytes divided by DiskLiveBytes;
	// SSDOptions.MaxSpaceAmplification bounds it, except in small tables.
	// RowSpaceAmplification is the size of the bucket files divided by the bytes of
	// the rows in buckets and their keys.
	SpaceAmplification    float64 `json:"space_amplification,omitempty"`
	RowSpaceAmplification float64 `json:"row_space_amplification,omitempty"`
}

// Sentinel errors.
var (
	// ErrBudget: rows do not fit the memory budget. A *BudgetError, which wraps it,
	// names the smallest budget that works.
	ErrBudget = errkind.New(errkind.Usage, "sparsetable: memory budget exceeded")
	// ErrNoSnapshot: the directory holds no committed snapshot (or not that one).
	ErrNoSnapshot = errkind.New(errkind.IO, "sparsetable: no such snapshot")
	// ErrClosed: the table was closed.
	ErrClosed = errors.New("sparsetable: table is closed")
	// ErrReadOnly: the table was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("sparsetable: table is read-only")
	// ErrNoSpace: a directory's budget or its file system has no room. The error
	// that wraps it says which, and how much is left. The call that failed has not
	// done what was asked for. Rows in memory stay, and Snapshot saves them if
	// there is room for them. DropSnapshot and Expire make room. Only KindSSD
	// returns it.
	ErrNoSpace = errkind.New(errkind.IO, "sparsetable: no space")
	// ErrFailed: writing the table's catalog failed in a way that leaves unknown
	// whether the snapshot was committed. The error that wraps it names the
	// directory and the cause. The table can only be closed; after it is opened
	// again, Snapshots tells whether the snapshot is there. Only KindSSD returns
	// it.
	ErrFailed = errkind.New(errkind.IO, "sparsetable: the table cannot be written any more")
	// ErrInUse: the table is open elsewhere: another process writes it, or another
	// process reads it and this one is to write it. A table of KindMemory that is
	// opened for reading is read completely by Open, so a writer does not exclude
	// it.
	ErrInUse = errkind.New(errkind.Locked, "sparsetable: table is in use")
	// ErrFiles: a file of the table is in none of its directories, or in two of
	// them. Probably a directory is not mounted, was not named, or was copied. The
	// error that wraps it names the file and the directories. Only KindSSD returns
	// it.
	ErrFiles = errkind.New(errkind.IO, "sparsetable: the table's directories are not as they were")
	// ErrSkewed: so many keys share the lowest bits of their hashes that a bucket would be
	// too large. Only tables that were made before each had a hash of its own return it.
	// A new table that imports the rows of the old one does not have the problem.
	ErrSkewed = errkind.New(errkind.IO, "sparsetable: too many keys have similar hashes")
	// ErrPinned: the operation requires that all working sets were released.
	ErrPinned = errors.New("sparsetable: working sets are still pinned")
	// ErrNoDirectory: a snapshot was asked of a table without Options.Dir.
	ErrNoDirectory = errors.New("sparsetable: the table has no directory for snapshots")
)
