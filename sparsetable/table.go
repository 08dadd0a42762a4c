package sparsetable

import "context"

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

	// Announce tells the table that the unique keys of one pass will soon be pulled (BagPipe §3.2).
	// Passes must be announced in the order in which they will be pulled. An announcement is only a
	// hint: no result depends on it. Announce waits only for other calls of Announce and
	// ForgetAnnounced. keys must not change until the pass has been pulled or forgotten: missing
	// rows may be read ahead.
	Announce(keys []uint64)

	// ForgetAnnounced withdraws the announced passes that were not pulled: they will not come. When
	// it returns, the table no longer uses their keys and keeps nothing for them, and other passes
	// may be announced. It waits for a Pull in progress.
	ForgetAnnounced()

	// Lookahead returns the number of passes, of that many unique keys each and beyond the one to
	// be pulled next, for which the table can use announcements at present. A caller should
	// announce that many passes ahead; announcing more gains nothing. 0 means that the table does
	// not look ahead. Lookahead may be called before every pass.
	Lookahead(keys int) (passes int)

	// Scan calls fn for every trained row, in no particular order, in the state at
	// the time of the call. row is only valid until fn returns and must not be
	// written. Scan must not run while rows are being updated, nor during Import or
	// Expire.
	Scan(ctx context.Context, fn func(key uint64, row []float32) error) error

	// Import inserts rows from src, replacing those of the same keys, until src returns io.EOF; of
	// equal keys the last one stays. Rows that were never trained are skipped. When src fails, all
	// rows that it returned before are inserted. After any other error (a disk's or the context's),
	// only some of them are: rows is their number, and if a key came several times, an earlier row
	// may have been inserted. Import must not run while working sets are pinned (ErrPinned).
	Import(ctx context.Context, src RowSource) (rows int64, err error)

	// Expire drops the rows that rule expires, as if they had never existed, and
	// returns their number. It must not run while working sets are pinned
	// (ErrPinned).
	Expire(ctx context.Context, rule ExpiryRule) (rows int64, err error)

	// Snapshot fixes the current state of the table together with record, the
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
