package sparsetable

import (
	"context"
	"errors"
	"io"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/lost"
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
	// earlier snapshot stay lost; Pull makes them again by Options.Init. Rows of lost slots
	// that were expired since come back, until Expire drops them again.
	//
	// Refill must not run while working sets are pinned (ErrPinned). After an error, some of
	// the rows are inserted; a second Refill with the same rows inserts the others. Where
	// nothing was lost, it inserts nothing and does not read src.
	Refill(ctx context.Context, src RowSource) (rows int64, err error)

	// RefillFrom is Refill with all rows of another table of the same layout.
	RefillFrom(ctx context.Context, from Table) (rows int64, err error)
}

// Loss is what a table lacks that was opened with SSDOptions.AllowLost.
type Loss = lost.Loss

// Lost implements LossHandler.
func (t *ssd) Lost() *Loss {
	if t.lost == nil {
		return nil
	}
	l := t.lost.Loss
	return &l
}

// Refill implements LossHandler.
func (t *ssd) Refill(ctx context.Context, src RowSource) (rows int64, err error) {
	return t.refill(ctx, func(r *lost.Refill) error {
		for {
			key, row, err := src.Next()
			if errors.Is(err, io.EOF) {
				return r.Flush()
			}
			if err == nil {
				err = r.Add(key, row)
			}
			if err != nil {
				return errors.Join(err, r.Flush())
			}
		}
	})
}

// RefillFrom implements LossHandler.
func (t *ssd) RefillFrom(ctx context.Context, from Table) (rows int64, err error) {
	return t.refill(ctx, func(r *lost.Refill) error {
		if have := from.Layout(); have != t.layout {
			return &LayoutError{Dir: t.dirs.Names[0], Have: t.layout, Want: have}
		}
		if err := from.Scan(ctx, r.Add); err != nil {
			return err
		}
		return r.Flush()
	})
}

// refill calls fn, which adds rows, if any were lost. Close of the table waits for it.
func (t *ssd) refill(ctx context.Context, fn func(*lost.Refill) error) (rows int64, err error) {
	if t.lost == nil {
		return 0, nil
	}
	if err := t.door.Enter(); err != nil {
		return 0, err
	}
	defer t.door.Leave()
	n := lost.RefillRows(t.layout, t.fitRows.Load())
	bytes := int64(n * layout.EntryBytes(t.layout))
	err = t.borrow(ctx, bytes)
	if errors.Is(err, errNoVictims) {
		err = t.overBudget("the rows to be inserted", t.aLittleMore())
	}
	if err != nil {
		return 0, apierr.Of(err)
	}
	defer t.giveBack(bytes)
	r := lost.NewRefill(ctx, t, t.lost, t.hash, t.layout, n)
	err = fn(r)
	return r.Inserted(), err
}
