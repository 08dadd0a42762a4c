package cpu

import (
	"math"

	"aibox/reader"
	"aibox/sparsetable"
)

// rowGrain is the number of rows that one thread takes at a time: some tens of
// microseconds of work, which is far more than it costs to hand them over.
const rowGrain = 512

// batchRows is the unique rows of the current mini-batch, U of them.
type batchRows struct {
	batch    *reader.Batch
	fields   int
	dim      int
	values   []float32 // (U, dim), what the network sees
	shows    []uint32  // (U), occurrences in the mini-batch
	clicks   []float32 // (U), occurrences in examples with label 1
	admitted []bool    // (U)

	rounding   sparsetable.Rounding
	overflowed overflowMark
}

// reset makes room for the rows of b.
func (r *batchRows) reset(b *reader.Batch, fields, dim int) {
	u := len(b.Rows)
	r.batch, r.fields, r.dim = b, fields, dim
	r.values = resize(r.values, u*dim)
	r.shows, r.clicks, r.admitted = resize(r.shows, u), resize(r.clicks, u), resize(r.admitted, u)
	r.overflowed.Store(0)
}

func (r *batchRows) bytes() int64 {
	return 4*int64(cap(r.values)+cap(r.shows)+cap(r.clicks)) + int64(cap(r.admitted))
}

// count fills shows and clicks.
func (r *batchRows) count() {
	clear(r.shows)
	clear(r.clicks)
	b := r.batch
	for ex := range b.N {
		clicked := b.Labels[ex]
		for _, i := range b.Index[b.Offsets[ex*r.fields]:b.Offsets[(ex+1)*r.fields]] {
			r.shows[i]++
			r.clicks[i] += clicked
		}
	}
}

// gather copies what the network sees of row into position i of values.
func (e *Engine) gather(i int, row []float32) {
	r := &e.rows
	dst := r.values[i*r.dim : (i+1)*r.dim]
	if r.admitted[i] {
		e.Layout.LoadValues(dst, row)
	} else {
		clear(dst)
	}
}

// collectRows brings the statistics of rows lo to hi up to date and gathers their values.
func (e *Engine) collectRows(lo, hi int) {
	r := &e.rows
	for i := lo; i < hi; i++ {
		row := e.pass.Rows.Row(int(r.batch.Rows[i]))
		st := e.Layout.Stats(row)
		if st.Count > 0 && e.ShowDecay != 1 && e.Day > st.LastSeen {
			f := sparsetable.Decay(e.ShowDecay, e.Day-st.LastSeen)
			st.Show = float32(float64(st.Show) * f)
			st.Click = float32(float64(st.Click) * f)
		}
		st.Show += float32(r.shows[i])
		st.Click += r.clicks[i]
		st.LastSeen = e.Day
		st.Count += min(r.shows[i], math.MaxUint32-st.Count)
		e.Layout.SetStats(row, st)
		r.admitted[i] = st.Count >= e.MinOccurrences
		e.gather(i, row)
	}
}

// gatherRows gathers the values of rows lo to hi for inference.
func (e *Engine) gatherRows(lo, hi int) {
	r := &e.rows
	for i := lo; i < hi; i++ {
		row := e.pass.Rows.Row(int(r.batch.Rows[i]))
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
	s := e.machine.train.scratch.take(0, r.dim)
	defer e.machine.train.scratch.put(s)
	grad := s.extra[:r.dim]
	for i := lo; i < hi; i++ {
		if !r.admitted[i] {
			continue
		}
		index := r.batch.Rows[i]
		row := e.pass.Rows.Row(int(index))
		e.machine.RowGrad(i, grad)
		values := r.values[i*r.dim : (i+1)*r.dim]
		if inPlace {
			values = e.Layout.Values(row)
		}
		e.state.RowSteps.Of(i).Update(values, e.Layout.State(row), grad)
		if !finite(values) {
			r.overflowed.Store(int64(i) + 1)
		}
		if !inPlace {
			e.Layout.StoreValues(row, values, e.pass.Keys[index], r.rounding)
		}
	}
}
