package ssd

import (
	"context"
	"errors"
	"io"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/lost"
)

// Lost implements sparsetable.LossHandler.
func (t *Table) Lost() *lost.Loss {
	if t.lost == nil {
		return nil
	}
	l := t.lost.Loss
	return &l
}

// Refill implements sparsetable.LossHandler.
func (t *Table) Refill(ctx context.Context, src contract.RowSource) (rows int64, err error) {
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

// RefillFrom implements sparsetable.LossHandler.
func (t *Table) RefillFrom(ctx context.Context, from contract.Scanner) (rows int64, err error) {
	return t.refill(ctx, func(r *lost.Refill) error {
		if have := from.Layout(); have != t.layout {
			return &layout.Error{Dir: t.dirs.Names[0], Have: t.layout, Want: have}
		}
		if err := from.Scan(ctx, r.Add); err != nil {
			return err
		}
		return r.Flush()
	})
}

// refill calls fn, which adds rows, if any rows were lost. The table's Close waits for it.
func (t *Table) refill(ctx context.Context, fn func(*lost.Refill) error) (rows int64, err error) {
	if t.lost == nil {
		return 0, nil
	}
	if err := t.inFlight.Begin(); err != nil {
		return 0, err
	}
	defer t.inFlight.End()
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
