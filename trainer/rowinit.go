package trainer

import (
	"sync"

	"aibox/sparsetable"
	"aibox/trainer/optim"
)

// initRounding is the update under which the values of new rows are rounded, and
// those that a warm start converts: steps of training begin at 1.
const initRounding = 0

// newRowInit returns what new rows of layout l hold: values that depend on seed
// and key, rounded where the layout rounds, and the optimizer state that goes
// with the rounded ones. Any number of goroutines may call it.
func newRowInit(l sparsetable.Layout, rows *optim.Rows, seed uint64, stddev float64) func(key uint64, row []float32) {
	fill := optim.NewInit(seed, stddev)
	if l.Format == sparsetable.Float32 {
		return func(key uint64, row []float32) {
			fill(key, l.Values(row))
			rows.Init(l.Values(row), l.State(row))
		}
	}
	rounding := sparsetable.NewRounding(seed, initRounding)
	scratch := sync.Pool{New: func() any {
		values := make([]float32, l.ValueDim)
		return &values
	}}
	return func(key uint64, row []float32) {
		values := scratch.Get().(*[]float32)
		defer scratch.Put(values)
		fill(key, *values)
		l.StoreValues(row, *values, key, rounding)
		l.LoadValues(*values, row)
		rows.Init(*values, l.State(row))
	}
}
