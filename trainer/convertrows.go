package trainer

import (
	"context"
	"errors"
	"io"
	"iter"

	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// converter turns rows of an earlier layout into rows of the current one.
type converter struct {
	take      *axesMatch // of the values
	keepState bool       // of the optimizer, for the values that are taken
	rounding  sparsetable.Rounding
	from, to  sparsetable.Layout
	init      func(key uint64, row []float32)
	refresh   func(values, state []float32)

	parts, oldParts []optim.Part // of the optimizer's state in to and in from, if it is kept
	clocks          decay.Handover

	buf      []float32 // a row of layout to
	old, now []float32 // values of a row in from and to
}

func newConverter(from, to sparsetable.Layout) *converter {
	return &converter{
		from: from, to: to,
		buf: make([]float32, to.Words()), old: make([]float32, from.ValueDim), now: make([]float32, to.ValueDim),
	}
}

// unchanged reports whether rows stay as they are.
func (c *converter) unchanged() bool {
	return c.keepState && c.from == c.to && c.take.fresh == 0 && !c.clocks.Renews()
}

// convert returns row in the current layout; the result is valid until the next call.
// Values that go from 16 bits to float32 stay the same numbers; those that go to
// another format are rounded in the same way as the first values of a new row. Values that
// the earlier row does not have begin as in a new row, with the state of one.
func (c *converter) convert(key uint64, row []float32) []float32 {
	if c.unchanged() {
		return row
	}
	clear(c.buf)
	c.init(key, c.buf)
	c.from.LoadValues(c.old, row)
	clock := c.clocks.Take(c.old, c.from.State(row))
	c.to.LoadValues(c.now, c.buf)
	copyMatched(c.take, c.now, c.old)
	c.to.StoreValues(c.buf, c.now, key, c.rounding)
	state := c.to.State(c.buf)
	c.to.LoadValues(c.now, c.buf)
	clear(state)
	if c.clocks.Counts() {
		*decay.ClockOf(state) = clock
		state = state[:len(state)-1]
	}
	c.refresh(c.now, state)
	if c.keepState {
		c.copyState(state, c.from.State(row))
	}
	c.to.SetStats(c.buf, c.from.Stats(row))
	return c.buf
}

// copyState copies the state of the optimizer, part by part: of each value that is taken, or a
// word that all values of the part share.
func (c *converter) copyState(into, old []float32) {
	for i, now := range c.parts {
		before := c.oldParts[i]
		if now.Shared {
			into[0] = old[0]
		} else {
			for v := range now.Values {
				if from := c.take.from[0][now.First+v] - before.First; from >= 0 && from < before.Values {
					into[v] = old[from]
				}
			}
		}
		into, old = into[now.Words():], old[before.Words():]
	}
}

// errStopScan ends a scan whose rows are no longer needed.
var errStopScan = errors.New("stop")

// importTable copies every row of from into to.
func importTable(ctx context.Context, from, to sparsetable.Table, convert func(uint64, []float32) []float32) (int64, error) {
	var scanErr error
	// Scan pushes and Import pulls: iter.Pull2 turns one into the other.
	next, stop := iter.Pull2(func(yield func(uint64, []float32) bool) {
		scanErr = from.Scan(ctx, func(key uint64, row []float32) error {
			if !yield(key, convert(key, row)) {
				return errStopScan
			}
			return nil
		})
	})
	defer stop()
	return to.Import(ctx, rowFunc(func() (uint64, []float32, error) {
		key, row, ok := next()
		switch {
		case ok:
			return key, row, nil
		case scanErr != nil:
			return 0, nil, scanErr
		}
		return 0, nil, io.EOF
	}))
}

// rowFunc is a sparsetable.RowSource.
type rowFunc func() (uint64, []float32, error)

func (f rowFunc) Next() (uint64, []float32, error) { return f() }
