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

	// Pull makes the rows of keys resident and pins them until the returned
	// working set is released (AIBox §4.3). keys[i] is position i of the working
	// set. keys should be unique: the positions of a key that comes several times
	// hold the same row, and count as several. It may run ahead of training: a row that
	// several working sets pin is one piece of memory, so later passes see the
	// updates of earlier ones. keys is not retained.
	//
	// PullCreate creates missing rows with Options.Init. PullLookup creates
	// nothing: positions without a trained row share a zero row that must not
	// be written, and Found reports them. To tell placeholders it reads what
	// rows hold, so it must not run while rows are being updated.
	//
	// Errors: ctx's, *BudgetError when the pinned rows cannot fit, which says how
	// many would, *CorruptionError, ErrReadOnly for PullCreate.
	Pull(ctx context.Context, keys []uint64, mode PullMode) (*WorkingSet, error)

	// Announce tells the table that the unique keys of one pass will be pulled
	// before long (BagPipe §3.2): passes in the order in which they were announced,
	// each after those announced before it. The table numbers them itself, for as
	// long as it is open. It is only a hint: no result depends on it, and it waits
	// for nothing but other calls of it. keys must stay as they are until the pass
	// has been pulled or forgotten: missing rows may be read ahead.
	Announce(keys []uint64)

	// ForgetAnnounced withdraws the announced passes that were not pulled: whoever
	// announced says that they will not be. When it returns, the table uses their
	// keys no more, nothing is kept for them, and other passes may be announced.
	// It waits for a Pull under way.
	ForgetAnnounced()

	// Lookahead is how many passes of that many unique keys, beyond the one to be
	// pulled next, the table takes note of at present: whoever announces should be
	// so far ahead, and gains nothing by being farther. 0: it does not look ahead.
	// Safe to ask before every pass.
	Lookahead(keys int) (passes int)

	// Scan calls fn for every trained row, in no particular order, over the
	// state at the time of the call. row is only valid during the call and
	// must not be written. Must not run while rows are being updated, nor
	// beside Import or Expire.
	Scan(ctx context.Context, fn func(key uint64, row []float32) error) error

	// Import inserts rows from src, replacing those of the same keys, until
	// src returns io.EOF; of equal keys the last one stays. Placeholders are
	// passed over. When src fails, all rows before that are inserted; after any
	// other error, the context's or a disk's, some are, rows in number, and of a
	// key that came several times perhaps not the last. Must not run while
	// working sets are pinned (ErrPinned).
	Import(ctx context.Context, src RowSource) (rows int64, err error)

	// Expire drops the rows that rule condemns, as if they had never been, and
	// returns their number. Must not run while working sets are pinned
	// (ErrPinned).
	Expire(ctx context.Context, rule ExpiryRule) (rows int64, err error)

	// Snapshot fixes the present state of the table together with record, the
	// caller's own bytes, and makes both durable, atomically, while the caller
	// goes on (OpenEmbedding §V-B). Call it between two mini-batches; updates
	// made after it returns are not part of the snapshot. ctx covers the writing
	// too. A Snapshot waits for the one before it.
	Snapshot(ctx context.Context, record []byte) (*PendingSnapshot, error)

	// Snapshots lists the committed snapshots, oldest first. When one is
	// damaged, it returns the others with the *CorruptionError.
	Snapshots() ([]SnapshotInfo, error)

	// DropSnapshot deletes a committed snapshot. The newest may be dropped too.
	DropSnapshot(id uint64) error

	// Stats returns counters since the table was opened.
	Stats() Stats

	// Close frees everything. Rows changed since the last snapshot are lost; a
	// snapshot being written is waited for. Working sets must have been
	// released (ErrPinned, and nothing is freed). A second Close does nothing.
	Close() error
}

// PullMode says what Pull does with a key that has no row.
type PullMode uint8

const (
	PullCreate PullMode = iota // create the row
	PullLookup                 // refer to a shared zero row, create nothing
)

// RowSource yields rows for Import; Next returns io.EOF at the end. row is
// valid until the next call.
type RowSource interface {
	Next() (key uint64, row []float32, err error)
}

// ExpiryRule condemns a row when one of its active limits is passed. The zero
// value condemns nothing, and Expire then does not read the table.
type ExpiryRule struct {
	Today      uint32  // the present day
	UnseenDays uint32  // drop rows with Today-LastSeen > UnseenDays; 0: never
	MinShow    float32 // drop rows whose show, decayed to Today, is below; 0: never
	ShowDecay  float32 // factor per day for that; 0 means 1
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

	// Of KindSSD alone:

	LookaheadPasses  int64 `json:"lookahead_passes,omitempty"`   // how far the window of announced passes reaches at present
	AnnouncedPasses  int64 `json:"announced_passes,omitempty"`   // passes announced and neither pulled nor forgotten, at present
	AnnouncedKeys    int64 `json:"announced_keys,omitempty"`     // keys of announced passes that the window took note of
	NotAnnouncedKeys int64 `json:"not_announced_keys,omitempty"` // and those that it had no room for

	Prefetched      int64 `json:"prefetched,omitempty"`       // rows read ahead for announced passes
	HitsInFlight    int64 `json:"hits_in_flight,omitempty"`   // hits on rows that other passes had pinned
	HitsIdle        int64 `json:"hits_idle,omitempty"`        // hits on rows that nobody had
	FilterNegatives int64 `json:"filter_negatives,omitempty"` // reads that filters spared
	FalsePositives  int64 `json:"false_positives,omitempty"`  // keys that were not in the bucket read for them
	BucketReads     int64 `json:"bucket_reads,omitempty"`     // buckets read by pulls
	DeviceReads     int64 `json:"device_reads,omitempty"`     // device reads for them
	ReadBytes       int64 `json:"read_bytes,omitempty"`       // their bytes

	CacheBytes int64 `json:"cache_bytes,omitempty"`
	CacheRows  int64 `json:"cache_rows,omitempty"`
	DirtyRows  int64 `json:"dirty_rows,omitempty"` // of those, with updates that are not on SSD
	Evictions  int64 `json:"evictions,omitempty"`
	SavedEarly int64 `json:"saved_early,omitempty"` // rows that snapshots had to copy before they changed or left

	RestoredRows int64 `json:"restored_rows,omitempty"` // rows in memory at the last snapshot that are again since the table was opened

	Slots       int64 `json:"slots,omitempty"`
	IndexBytes  int64 `json:"index_bytes,omitempty"`  // filters included
	FilterBytes int64 `json:"filter_bytes,omitempty"` // of all slots

	// With CacheBytes and IndexBytes these make up MemoryBytes.

	BufferBytes  int64 `json:"buffer_bytes,omitempty"`  // set aside for buckets and delta blocks being written or read
	CarryBytes   int64 `json:"carry_bytes,omitempty"`   // set aside for buckets that working sets carry
	CatalogBytes int64 `json:"catalog_bytes,omitempty"` // the catalog's database and lists of pages
	SetBytes     int64 `json:"set_bytes,omitempty"`     // lists of working sets, and what Pull works with
	ScratchBytes int64 `json:"scratch_bytes,omitempty"` // set aside for rewriting
	OutsideBytes int64 `json:"outside_bytes,omitempty"` // opened for reading only: places of the rows that the snapshot has outside of buckets

	FlushedRows      int64 `json:"flushed_rows,omitempty"`  // dirty rows written to SSD
	FlushedSlots     int64 `json:"flushed_slots,omitempty"` // buckets written for them
	Splits           int64 `json:"splits,omitempty"`        // of slots, as rows came
	Merges           int64 `json:"merges,omitempty"`        // of slots, as rows went
	RewriteReads     int64 `json:"rewrite_reads,omitempty"` // device reads for writing, and for scans
	RewriteReadBytes int64 `json:"rewrite_read_bytes,omitempty"`

	// WrittenBytes is all that was written to SSD: SnapshotBytes and the four
	// purposes behind it.

	UpdatedRows         int64   `json:"updated_rows,omitempty"`        // pulled to be trained, once for each pass, and imported
	WriteAmplification  float64 `json:"write_amplification,omitempty"` // WrittenBytes by the bytes of those rows and their keys
	WrittenBytes        int64   `json:"written_bytes,omitempty"`
	FlushedBytes        int64   `json:"flushed_bytes,omitempty"`         // buckets with dirty rows, and of slots that were split or merged
	CompactedBytes      int64   `json:"compacted_bytes,omitempty"`       // buckets moved by compaction
	ImportedBytes       int64   `json:"imported_bytes,omitempty"`        // spools and buckets of imports that go past the cache
	CatalogWrittenBytes int64   `json:"catalog_written_bytes,omitempty"` // the index's pages, and the catalog's own

	// DiskBytes is what SSDOptions.DirBudgetBytes bounds in all directories: bucket
	// files, the rows that snapshots have outside of them, and the spool of an import.
	DiskBytes     int64 `json:"disk_bytes,omitempty"`
	DiskLiveBytes int64 `json:"disk_live_bytes,omitempty"` // of buckets in use, in whole units of the device
	// DiskPaddingBytes are those of DiskLiveBytes that hold no row: the headers of
	// buckets, and what is left of their last units. Compaction cannot win them.
	DiskPaddingBytes int64 `json:"disk_padding_bytes,omitempty"`
	// SpaceAmplification is what bucket files take by DiskLiveBytes, which
	// SSDOptions.MaxSpaceAmplification bounds; RowSpaceAmplification is the same by
	// the bytes of the rows in buckets with their keys.
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
	// that wraps it says which and how much. What was asked for has not happened;
	// rows in memory stay, and Snapshot saves them where there is room for them.
	// DropSnapshot and Expire make room. Of KindSSD alone.
	ErrNoSpace = errkind.New(errkind.IO, "sparsetable: no space")
	// ErrFailed: the table's catalog could not be written, in a way that leaves
	// unknown whether the snapshot under way is there. The error that wraps it names
	// the directory and the cause. The table can only be closed; opening it anew
	// tells. Of KindSSD alone.
	ErrFailed = errkind.New(errkind.IO, "sparsetable: the table cannot be written any more")
	// ErrInUse: another process writes the table, or reads it and this one is to
	// write. Whoever opens a table in memory for reading reads it at once, and can do
	// so beside a writer.
	ErrInUse = errkind.New(errkind.Locked, "sparsetable: table is in use")
	// ErrFiles: a file of the table is in none of its directories, or in two: one
	// of them is not mounted or not named, or was copied. The error that wraps it
	// names file and directories. Of KindSSD alone.
	ErrFiles = errkind.New(errkind.IO, "sparsetable: the table's directories are not as they were")
	// ErrPinned: the operation needs all working sets released.
	ErrPinned = errors.New("sparsetable: working sets are still pinned")
	// ErrNoDirectory: a snapshot of a table without Options.Dir.
	ErrNoDirectory = errors.New("sparsetable: the table has no directory for snapshots")
)
