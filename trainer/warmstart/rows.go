package warmstart

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"time"

	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// Conversion says how to convert rows of an earlier layout to the current one.
type Conversion struct {
	Take      *Match // of the values
	KeepState bool   // of the optimizer, for the values that are taken over
	Rounding  sparsetable.Rounding
	From, To  sparsetable.Layout
	Init      func(key uint64, row []float32) // of a new row
	Refresh   func(values, state []float32)   // of the optimizer, for a new row

	Parts, OldParts []optim.Part // of the optimizer's state in To and in From, if it is kept
	Clocks          decay.Handover

	Days int64 // added to the day when a row was last seen, if the earlier model counts days from another one
}

// Converter converts rows, one at a time.
type Converter struct {
	Conversion
	buf      []float32 // a row of layout To
	old, now []float32 // values of a row in From and To
}

// NewConverter returns a converter.
func NewConverter(c Conversion) *Converter {
	return &Converter{
		Conversion: c,
		buf:        make([]float32, c.To.Words()), old: make([]float32, c.From.ValueDim), now: make([]float32, c.To.ValueDim),
	}
}

// unchanged reports whether rows stay as they are, except for their days.
func (c *Converter) unchanged() bool {
	return c.KeepState && c.From == c.To && c.Take.Fresh == 0 && !c.Clocks.Renews()
}

// Convert returns row in the current layout. The result is valid until the next call. Values
// converted from 16 bits to float32 do not change. Values converted to another format are rounded
// like the initial values of a new row. Values that the earlier row does not have start as in a new
// row, with its state.
func (c *Converter) Convert(key uint64, row []float32) []float32 {
	if c.unchanged() {
		if c.Days == 0 {
			return row
		}
		copy(c.buf, row)
	} else {
		c.convert(key, row)
	}
	st := c.From.Stats(row)
	if c.Days != 0 {
		st.LastSeen = uint32(max(1, int64(st.LastSeen)+c.Days))
	}
	c.To.SetStats(c.buf, st)
	return c.buf
}

// convert fills c.buf with everything but the statistics of a row.
func (c *Converter) convert(key uint64, row []float32) {
	clear(c.buf)
	c.Init(key, c.buf)
	c.From.LoadValues(c.old, row)
	clock := c.Clocks.Take(c.old, c.From.State(row))
	c.To.LoadValues(c.now, c.buf)
	Copy(c.Take, c.now, c.old)
	c.To.StoreValues(c.buf, c.now, key, c.Rounding)
	state := c.To.State(c.buf)
	c.To.LoadValues(c.now, c.buf)
	clear(state)
	words := state
	if c.Clocks.Counts() {
		words = state[:len(state)-1]
	}
	c.Refresh(c.now, words)
	if c.KeepState {
		c.copyState(words, c.From.State(row))
	}
	if c.Clocks.Counts() {
		*decay.ClockOf(state) = c.Clocks.Clock(clock, words)
	}
}

// copyState copies the state of the optimizer part by part: for each value that is taken over, or
// the one word that all values of the part share.
func (c *Converter) copyState(into, old []float32) {
	for i, now := range c.Parts {
		before := c.OldParts[i]
		if now.Shared {
			into[0] = old[0]
		} else {
			for v := range now.Values {
				if from := c.Take.from[0][now.First+v] - before.First; from >= 0 && from < before.Values {
					into[v] = old[from]
				}
			}
		}
		into, old = into[now.Words():], old[before.Words():]
	}
}

// errStopScan ends a scan whose rows are no longer needed.
var errStopScan = errors.New("stop")

// CopyRows converts every row of from and copies it into to. It logs its progress, and returns the
// number of rows and the seconds that it took.
func CopyRows(ctx context.Context, from, to sparsetable.Table, c *Converter, log *slog.Logger) (rows int64, seconds float64, err error) {
	p := newCopyProgress(log, from.Stats().Rows, time.Now)
	rows, err = importTable(ctx, from, to, func(key uint64, row []float32) []float32 {
		p.count()
		return c.Convert(key, row)
	})
	return rows, p.seconds(), err
}

// importTable copies every row of from into to.
func importTable(ctx context.Context, from, to sparsetable.Table, convert func(uint64, []float32) []float32) (int64, error) {
	var scanErr error
	// Scan pushes and Import pulls; iter.Pull2 converts one into the other.
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
