package sparsetable

import (
	"context"
	"errors"
)

// LossHandler is what a table of KindSSD implements. Each of its directories is a failure
// domain (CPR §4): when one is lost, the rows of the slots whose buckets lie there are lost,
// and no others. With SSDOptions.AllowLost the table opens nevertheless.
type LossHandler interface {
	// Lost says what the snapshot had that Open did not find; nil if it found everything.
	// It does not change while the table is open. Once a snapshot was taken, the table is
	// whole without the lost rows: when that snapshot is opened, Lost returns nil.
	Lost() *Loss

	// Refill inserts rows of src, until src returns io.EOF, that may have been lost and
	// whose key the table does not have now, and returns their number. It leaves out all
	// others, also rows that were never trained. So with the rows of an earlier snapshot as
	// src, the lost rows go back to that snapshot while the others stay (partial recovery,
	// CPR §4.1), apart from rows that were made anew since Open. Rows that were added after the
	// earlier snapshot stay lost; Pull makes them again by Options.Init. Expire drops those
	// that had been dropped since.
	//
	// Refill must not run while working sets are pinned (ErrPinned). After an error, some of
	// the rows are inserted; a second Refill with the same rows inserts the others. Where
	// nothing was lost, it inserts nothing and does not read src.
	Refill(ctx context.Context, src RowSource) (rows int64, err error)

	// RefillFrom is Refill with all rows of another table of the same layout.
	RefillFrom(ctx context.Context, from Table) (rows int64, err error)
}

// Loss is what a table lacks that was opened with SSDOptions.AllowLost.
type Loss struct {
	Dirs       []LostDir
	Slots      int64 // of the index, whose rows were lost
	TotalSlots int64 // that the snapshot had; Slots/TotalSlots is the portion 1/N of CPR, eq. 4
	Rows       int64 // lost
	TotalRows  int64 // that the snapshot had
}

// LostDir is a directory that lacks files of the snapshot.
type LostDir struct {
	// Dir is its name in SSDOptions.Dirs; "" if no directory of these is known to have had
	// the files.
	Dir string
	// Replaced says that the directory can be used, and is again one of the table's. The
	// others are not used until the table is opened the next time.
	Replaced bool
	Err      error // why the directory could not be read; nil: it lacks the files
	Files    int   // of the snapshot, that were lost
}

var errNoRefill = errors.New("sparsetable: opening a table after the loss of a directory is not supported yet")

// Lost implements LossHandler.
func (t *ssd) Lost() *Loss { return nil }

// Refill implements LossHandler.
func (t *ssd) Refill(context.Context, RowSource) (int64, error) { return 0, errNoRefill }

// RefillFrom implements LossHandler.
func (t *ssd) RefillFrom(context.Context, Table) (int64, error) { return 0, errNoRefill }
