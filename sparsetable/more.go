package sparsetable

import (
	"context"
	"fmt"

	"aibox/sparsetable/internal/details"
	"aibox/sparsetable/internal/lost"
	"aibox/sparsetable/internal/ssd"
)

// Interfaces of tables that can do more than Table requires; callers use type assertions.

// SnapshotHolder is implemented by both kinds of tables.
type SnapshotHolder interface {
	// HoldSnapshot returns the files of a snapshot. It fails with ErrNoSnapshot.
	HoldSnapshot(id uint64) (*SnapshotFiles, error)
}

// Flusher is implemented by tables that store updated rows only later, those of KindSSD.
type Flusher interface {
	// Flush writes all dirty rows to the table's buckets. They stay in memory. Flush does not make
	// them durable; only Snapshot does. But the next snapshot then has no dirty rows to save, and
	// opening it has none to restore. Flush must not run while working sets are pinned (ErrPinned).
	// It writes a bucket for every few rows, as if they left memory.
	Flush(ctx context.Context) error
}

// Compacter is implemented by tables that can be compacted to take less space, those of KindSSD.
type Compacter interface {
	// Compact moves the live buckets out of every file whose dead share is at least minGain,
	// 0 < minGain <= 1. It skips the files that are being appended to, one in each directory. After
	// each file it calls progress, which may be nil. The space of the files becomes free once no
	// snapshot holds them: to free it, take a snapshot and drop those before it. Rows do not
	// change. Pulls, updates and snapshots may run at the same time.
	//
	// It needs disk space for the buckets that it moves. As long as a snapshot
	// holds the old files, that is up to the size of all live buckets.
	Compact(ctx context.Context, minGain float64, progress func(CompactProgress)) (CompactProgress, error)
}

// CompactProgress says how far Compact has come.
type CompactProgress = ssd.CompactProgress

// Compact compacts t, or returns an error that wraps ErrUnsupported where its
// kind has nothing to compact.
func Compact(ctx context.Context, t Table, minGain float64, progress func(CompactProgress)) (CompactProgress, error) {
	c, ok := t.(Compacter)
	if !ok {
		return CompactProgress{}, fmt.Errorf("%w: a table of kind %q has nothing to compact", ErrUnsupported, t.Stats().Kind)
	}
	return c.Compact(ctx, minGain, progress)
}

// Detailer is implemented by tables that have Details, those of KindSSD.
type Detailer interface {
	// Details makes a pass over the index. Writers of buckets wait for it.
	Details(ctx context.Context) (*Details, error)
}

// Details are figures that Stats leaves out because they take a pass over the
// index.
type Details = details.Details

// DetailsOf returns the details of a table, or an error that wraps
// ErrUnsupported where its kind has none.
func DetailsOf(ctx context.Context, t Table) (*Details, error) {
	d, ok := t.(Detailer)
	if !ok {
		return nil, fmt.Errorf("%w: a table of kind %q has no details", ErrUnsupported, t.Stats().Kind)
	}
	return d.Details(ctx)
}

// LossHandler is implemented by tables of KindSSD. Each of their directories is a failure domain
// (CPR §4): when one is lost, only the rows of the slots whose buckets lie there are lost. With
// SSDOptions.AllowLost the table opens nevertheless.
type LossHandler interface {
	// Lost says what the snapshot had that Open did not find; nil if it found everything. It does
	// not change while the table is open. A snapshot that is taken after the loss is complete
	// without the lost rows: when it is opened, Lost returns nil.
	Lost() *Loss

	// Refill inserts those rows of src that may have been lost and whose key the table does not
	// have now, and returns their number. It reads src until io.EOF and skips all other rows, also
	// rows that were never trained. So with the rows of an earlier snapshot as src, the lost rows
	// go back to that snapshot while the others stay (partial recovery, CPR §4.1), apart from rows
	// that were created again since Open. Rows that were added after the earlier snapshot stay
	// lost; Pull creates them again with Options.Init. Rows of lost slots that have expired since
	// then come back, until Expire drops them again.
	//
	// Refill must not run while working sets are pinned (ErrPinned). After an error, some of
	// the rows are inserted; a second Refill with the same rows inserts the others. Where
	// nothing was lost, it inserts nothing and does not read src.
	Refill(ctx context.Context, src RowSource) (rows int64, err error)

	// RefillFrom is Refill with all rows of another table of the same layout.
	RefillFrom(ctx context.Context, from Scanner) (rows int64, err error)
}

// Loss is what a table that was opened with SSDOptions.AllowLost lacks.
type Loss = lost.Loss
