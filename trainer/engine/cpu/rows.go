package cpu

import (
	"math"
	"sync/atomic"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/sparsetable"
)

// rowGrain is the number of rows that one thread takes at a time: some tens of
// microseconds of work, which is far more than it costs to hand them over.
const rowGrain = 512

// batchRows is the unique rows of the current mini-batch, U of them.
type batchRows struct {
	batch    *reader.Batch
	values   []float32 // (U, RowDim), what the network sees
	admitted []bool    // (U)

	rounding   sparsetable.Rounding
	overflowed atomic.Int64 // 1 + the index of a row whose update was not finite; 0: there is none
}

// reset makes room for the rows of b.
func (r *batchRows) reset(b *reader.Batch, dim int) {
	u := len(b.Rows)
	r.batch, r.values, r.admitted = b, resize(r.values, u*dim), resize(r.admitted, u)
	r.overflowed.Store(0)
}

func (r *batchRows) bytes() int64 {
	return 4*int64(cap(r.values)) + int64(cap(r.admitted))
}

// seen returns how often row i occurs in the mini-batch, and how often with label 1.
func (e *Engine) seen(i int) (shows uint32, clicks float32) {
	b := e.rows.batch
	bags := b.RowBags[b.RowStarts[i]:b.RowStarts[i+1]]
	fields := int32(e.Network.Fields)
	for _, bag := range bags {
		clicks += b.Labels[bag/fields]
	}
	return uint32(len(bags)), clicks
}

// values is what the network sees of row i.
func (e *Engine) values(i int) []float32 {
	dim := e.Layout.ValueDim
	return e.rows.values[i*dim:][:dim]
}

// row returns row i, and asks for one of those that come after it.
func (e *Engine) row(i int) []float32 {
	rows := e.rows.batch.Rows
	if next := i + prefetchAhead; next < len(rows) {
		kernel.Prefetch(e.pass.Rows.Row(int(rows[next])))
	}
	return e.pass.Rows.Row(int(rows[i]))
}

// gather copies what the network sees of row into position i of values.
func (e *Engine) gather(i int, row []float32) {
	dst := e.values(i)
	if e.rows.admitted[i] {
		e.Layout.LoadValues(dst, row)
		e.decay.settle(dst, e.Layout.State(row))
	} else {
		clear(dst)
	}
}

// collectRows brings the statistics of rows lo to hi up to date and gathers their values.
func (e *Engine) collectRows(lo, hi int) {
	r := &e.rows
	for i := lo; i < hi; i++ {
		row := e.row(i)
		st := e.Layout.Stats(row)
		if st.Count > 0 && e.ShowDecay != 1 && e.Day > st.LastSeen {
			f := sparsetable.Decay(e.ShowDecay, e.Day-st.LastSeen)
			st.Show = float32(float64(st.Show) * f)
			st.Click = float32(float64(st.Click) * f)
		}
		shows, clicks := e.seen(i)
		st.Show += float32(shows)
		st.Click += clicks
		st.LastSeen = e.Day
		st.Count += min(shows, math.MaxUint32-st.Count)
		e.Layout.SetStats(row, st)
		r.admitted[i] = st.Count >= e.MinOccurrences
		e.gather(i, row)
	}
}

// gatherRows gathers the values of rows lo to hi for inference.
func (e *Engine) gatherRows(lo, hi int) {
	r := &e.rows
	for i := lo; i < hi; i++ {
		row := e.row(i)
		count := e.Layout.Stats(row).Count
		r.admitted[i] = count > 0 && count >= e.MinOccurrences
		e.gather(i, row)
	}
}

// updateRows updates rows lo to hi, which collectRows has read, by their gradients.
// Values of 16 bits are updated as float32 where collectRows has put them, and then rounded
// into their row with random bits of this step. A row whose values are no longer
// finite is noted: since it may not occur again in this job, this may be the only
// place that finds it.
func (e *Engine) updateRows(lo, hi int) {
	r := &e.rows
	inPlace := e.Layout.Format == sparsetable.Float32
	dim := e.Layout.ValueDim
	s := e.machine.train.scratch.take(0, dim)
	defer e.machine.train.scratch.put(s)
	grad := s.extra[:dim]
	for i := lo; i < hi; i++ {
		if !r.admitted[i] {
			continue
		}
		row := e.row(i)
		e.machine.RowGrad(i, grad)
		values := e.values(i)
		if inPlace {
			values = e.Layout.Values(row)
			if e.decay.timeline != nil {
				copy(values, e.values(i)) // which collectRows has decayed
			}
		}
		state := e.decay.update(values, e.Layout.State(row))
		e.state.RowSteps.Of(i).Update(values, state, grad)
		if !finite(values) {
			r.overflowed.Store(int64(i) + 1)
		}
		if !inPlace {
			e.Layout.StoreValues(row, values, e.pass.Keys[r.batch.Rows[i]], r.rounding)
		}
	}
}
