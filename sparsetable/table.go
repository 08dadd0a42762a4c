package sparsetable

import (
	"context"
	"errors"
)

// Table stores rows of one Layout under 64-bit keys. Every method may be
// called from any goroutine; what a WorkingSet's rows hold is guarded by the
// caller (one trainer updates rows in place, mini-batch after mini-batch).
type Table interface {
	// Layout is the shape of the rows.
	Layout() Layout

	// Pull makes the rows of keys resident and pins them until the returned
	// working set is released (AIBox §4.3). keys must be unique; keys[i] is
	// position i of the working set. It may run ahead of training: a row that
	// several working sets pin is one piece of memory, so later passes see the
	// updates of earlier ones. keys is not retained.
	//
	// PullCreate creates missing rows with Options.Init. PullLookup creates
	// nothing: positions without a trained row share a zero row that must not
	// be written, and Found reports them. To tell placeholders it reads what
	// rows hold, so it must not run while rows are being updated.
	//
	// Errors: ctx's, ErrBudget when the pinned rows cannot fit, *CorruptionError,
	// ErrReadOnly for PullCreate.
	Pull(ctx context.Context, keys []uint64, mode PullMode) (*WorkingSet, error)

	// Announce tells the table that pass will pull keys before long, passes in
	// ascending order (BagPipe §3.2). It never blocks and is only a hint: no
	// result may depend on it. keys is not retained.
	Announce(pass int64, keys []uint64)

	// Scan calls fn for every trained row, in no particular order, over the
	// state at the time of the call. row is only valid during the call and
	// must not be written. Must not run while rows are being updated, nor
	// beside Import or Expire.
	Scan(ctx context.Context, fn func(key uint64, row []float32) error) error

	// Import inserts rows from src, replacing those of the same keys, until
	// src returns io.EOF. Placeholders are passed over. After an error the rows
	// so far stay. Must not run while working sets are pinned (ErrPinned).
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
// value condemns nothing.
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
	Lookups       int64  `json:"lookups"`        // keys pulled
	Hits          int64  `json:"hits"`           // of those, found in memory
	Created       int64  `json:"created"`        // of those, created
	Missing       int64  `json:"missing"`        // of those, looked up and not there
	PinnedSets    int64  `json:"pinned_sets"`    // working sets not yet released
	Expired       int64  `json:"expired"`        // rows dropped by Expire
	Snapshots     int64  `json:"snapshots"`      // snapshots committed
	SnapshotBytes int64  `json:"snapshot_bytes"` // bytes written for them

	// Of KindSSD alone:

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

	Slots       int64 `json:"slots,omitempty"`
	IndexBytes  int64 `json:"index_bytes,omitempty"`  // filters included
	FilterBytes int64 `json:"filter_bytes,omitempty"` // of all slots

	FlushedRows        int64   `json:"flushed_rows,omitempty"`  // dirty rows written to SSD
	FlushedSlots       int64   `json:"flushed_slots,omitempty"` // buckets written for them
	Splits             int64   `json:"splits,omitempty"`
	RewriteReads       int64   `json:"rewrite_reads,omitempty"` // device reads for writing, and for scans
	RewriteReadBytes   int64   `json:"rewrite_read_bytes,omitempty"`
	WrittenBytes       int64   `json:"written_bytes,omitempty"`       // of buckets
	CompactedBytes     int64   `json:"compacted_bytes,omitempty"`     // of those, moved by compaction
	WriteAmplification float64 `json:"write_amplification,omitempty"` // bytes written per byte of dirty rows

	DiskBytes          int64   `json:"disk_bytes,omitempty"`          // of all bucket files
	DiskLiveBytes      int64   `json:"disk_live_bytes,omitempty"`     // of buckets in use
	SpaceAmplification float64 `json:"space_amplification,omitempty"` // the former by the latter
}

// Sentinel errors.
var (
	// ErrBudget: rows do not fit the memory budget. The error that wraps it
	// names the smallest budget that works.
	ErrBudget = errors.New("sparsetable: memory budget exceeded")
	// ErrNoSnapshot: the directory holds no committed snapshot (or not that one).
	ErrNoSnapshot = errors.New("sparsetable: no such snapshot")
	// ErrClosed: the table was closed.
	ErrClosed = errors.New("sparsetable: table is closed")
	// ErrReadOnly: the table was opened with Options.ReadOnly.
	ErrReadOnly = errors.New("sparsetable: table is read-only")
	// ErrPinned: the operation needs all working sets released.
	ErrPinned = errors.New("sparsetable: working sets are still pinned")
	// ErrNoDirectory: a snapshot of a table without Options.Dir.
	ErrNoDirectory = errors.New("sparsetable: the table has no directory for snapshots")
)
