package jobparts

import (
	"sync"

	"aibox/sparsetable"
	"aibox/trainer/optim"
)

// InitRounding is the step number for the stochastic rounding of the values of new rows, and of
// those that a warm start converts. Steps of training begin at 1.
const InitRounding = 0

// NewRowInit returns a function that fills a new row of layout l. The row's values depend on seed
// and key, and are rounded if the layout has 16-bit values; its optimizer state belongs to the
// rounded values. Any number of goroutines may call that function.
func NewRowInit(l sparsetable.Layout, rows *optim.Rows, seed uint64, stddev float64) func(key uint64, row []float32) {
	fill := optim.NewInit(seed, stddev)
	stateDim := rows.StateDim() // a clock that follows is 0: the row was never updated
	if l.Format == sparsetable.Float32 {
		return func(key uint64, row []float32) {
			fill(key, l.Values(row))
			rows.Init(l.Values(row), l.State(row)[:stateDim])
		}
	}
	rounding := sparsetable.NewRounding(seed, InitRounding)
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
		rows.Init(*values, l.State(row)[:stateDim])
	}
}
