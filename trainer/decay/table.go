package decay

import (
	"context"

	"aibox/sparsetable"
)

// Table is a read-only table whose rows are decayed up to a moment. Its values are float32, since
// 16-bit values would have to be rounded again.
type Table struct {
	sparsetable.Table
	now    Moment
	stored sparsetable.Layout
}

// NewTable returns a view of t, whose rows have clocks, at the given moment.
func NewTable(t sparsetable.Table, now Moment) *Table {
	return &Table{Table: t, now: now, stored: t.Layout()}
}

// Layout implements sparsetable.Table.
func (t *Table) Layout() sparsetable.Layout {
	l := t.stored
	l.Format = sparsetable.Float32
	return l
}

// Scan implements sparsetable.Table.
func (t *Table) Scan(ctx context.Context, fn func(key uint64, row []float32) error) error {
	settled := make([]float32, t.Layout().Words())
	return t.Table.Scan(ctx, func(key uint64, row []float32) error {
		t.Settle(settled, row)
		return fn(key, settled)
	})
}

// Settle writes a row of the underlying table to settled, in the view's layout.
func (t *Table) Settle(settled, row []float32) {
	l := t.Layout()
	values, state := l.Values(settled), l.State(settled)
	t.stored.LoadValues(values, row)
	copy(state, t.stored.State(row))
	l.SetStats(settled, t.stored.Stats(row))
	if clock := ClockOf(state); *clock != 0 {
		t.now.Settle(values, state)
		*clock = t.now.Clock()
	}
}

// ClockOf returns the clock of a row with the given state: its last word.
func ClockOf(state []float32) *float32 { return &state[len(state)-1] }
