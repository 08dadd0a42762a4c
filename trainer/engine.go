package trainer

import (
	"fmt"
	"math"
	"sync/atomic"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// engine is stage EL+JL (AIBox §2): it gathers the rows of a mini-batch, runs
// the network forward and backward, and updates dense parameters and rows. One
// goroutine uses it; the kernels inside use all compute threads.
type engine struct {
	model    *model.Model
	dense    *optim.Dense
	rows     *optim.Rows
	rowSteps *rowSteps // of training
	schedule optim.Schedule
	layout   sparsetable.Layout
	fields   int
	seed     uint64 // for the stochastic rounding of 16-bit values

	day            uint32
	showDecay      float32 // per day
	minOccurrences uint32  // an embedding is used from this occurrence of its key on

	step      int64 // optimizer steps taken, including those of earlier models
	firstStep int64 // step at which this run began; the schedule counts from it

	// The following is scratch memory for one mini-batch with U unique rows.
	values   []float32 // (U, ValueDim), what the network sees
	shows    []uint32  // (U), occurrences in the mini-batch
	clicks   []float32 // (U), occurrences in examples with label 1
	admitted []bool    // (U)
}

// rowGrain is the number of rows that one worker takes at a time: some tens of
// microseconds of work, which is far more than it costs to hand them over.
const rowGrain = 512

// train takes one optimizer step on b, a mini-batch of p. The result holds the
// logits from before the step and is valid until the next call.
func (e *engine) train(p pulled, b *reader.Batch) (model.Result, error) {
	e.collect(p, b)
	res, err := e.model.Train(e.inputs(b, e.step+1))
	if err != nil {
		return res, fmt.Errorf("mini-batch of step %d: %w", e.step+1, err)
	}
	e.step++
	scale := e.schedule.Multiplier(e.step - e.firstStep)
	e.dense.Step(e.step, scale)
	e.rowSteps.prepare(b, e.rows, e.step, scale)
	return res, e.update(p, b, res.RowGrads)
}

// collect brings the statistics of b's rows up to date and gathers their values.
func (e *engine) collect(p pulled, b *reader.Batch) {
	u := len(b.Rows)
	e.grow(u)
	e.count(b)
	kernel.Parallel(u, rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := p.rows.Row(int(b.Rows[i]))
			st := e.layout.Stats(row)
			if st.Count > 0 && e.showDecay != 1 && e.day > st.LastSeen {
				f := sparsetable.Decay(e.showDecay, e.day-st.LastSeen)
				st.Show = float32(float64(st.Show) * f)
				st.Click = float32(float64(st.Click) * f)
			}
			st.Show += float32(e.shows[i])
			st.Click += e.clicks[i]
			st.LastSeen = e.day
			st.Count += min(e.shows[i], math.MaxUint32-st.Count)
			e.layout.SetStats(row, st)
			e.admitted[i] = st.Count >= e.minOccurrences
			e.gather(i, row)
		}
	})
}

// update updates the rows of b, which collect has read, with their gradients grads (U,
// ValueDim). Values of 16 bits are updated as float32 in e.values, where collect has
// put them, and then rounded into their row with random bits of this step. The error
// wraps model.ErrNotFinite if a row holds values that are not finite: since the row
// may not occur again in this job, this may be the only place that finds it.
func (e *engine) update(p pulled, b *reader.Batch, grads []float32) error {
	var bad atomic.Int64 // 1 + the index of a row that overflowed; 0: none
	dim := e.layout.ValueDim
	inPlace := e.layout.Format == sparsetable.Float32
	rounding := sparsetable.NewRounding(e.seed, uint64(e.step))
	kernel.Parallel(len(b.Rows), rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if !e.admitted[i] {
				continue
			}
			row := p.rows.Row(int(b.Rows[i]))
			grad := grads[i*dim : (i+1)*dim]
			step := e.rowSteps.of(i)
			var values []float32
			if inPlace {
				values = e.layout.Values(row)
			} else {
				values = e.values[i*dim : (i+1)*dim]
			}
			step.Update(values, e.layout.State(row), grad)
			if !finite(values) {
				bad.Store(int64(i) + 1)
			}
			if !inPlace {
				e.layout.StoreValues(row, values, p.pass.Keys[b.Rows[i]], rounding)
			}
		}
	})
	if i := bad.Load(); i > 0 {
		return e.overflow(fmt.Sprintf("the row of key %x", p.pass.Keys[b.Rows[i-1]]))
	}
	return nil
}

// checkDense reports dense parameters that overflowed in the last step. After any
// other step, the step that follows finds them.
func (e *engine) checkDense() error {
	for _, p := range e.model.Params() {
		if !finite(p.Data) {
			return e.overflow("parameter " + p.Name)
		}
	}
	return nil
}

func (e *engine) overflow(what string) error {
	return fmt.Errorf("%w: %s after the update of step %d; lower the learning rate, or look for extreme dense features", model.ErrNotFinite, what, e.step)
}

func finite(x []float32) bool {
	const exponent = 0x7f800000 // all ones: infinite or NaN
	for _, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}

// infer returns the logits of b, a mini-batch of p; they are valid until the next call.
// Rows that were never trained, or have not occurred often enough, count as zeros.
func (e *engine) infer(p pulled, b *reader.Batch) ([]float32, error) {
	u := len(b.Rows)
	e.grow(u)
	kernel.Parallel(u, rowGrain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := p.rows.Row(int(b.Rows[i]))
			count := e.layout.Stats(row).Count
			e.admitted[i] = count > 0 && count >= e.minOccurrences
			e.gather(i, row)
		}
	})
	return e.model.Infer(e.inputs(b, e.step))
}

// gather copies what the network sees of row into position i of values.
func (e *engine) gather(i int, row []float32) {
	dst := e.values[i*e.layout.ValueDim : (i+1)*e.layout.ValueDim]
	if e.admitted[i] {
		e.layout.LoadValues(dst, row)
	} else {
		clear(dst)
	}
}

// count fills shows and clicks for b.
func (e *engine) count(b *reader.Batch) {
	clear(e.shows)
	clear(e.clicks)
	for ex := range b.N {
		clicked := b.Labels[ex]
		for _, r := range b.Index[b.Offsets[ex*e.fields]:b.Offsets[(ex+1)*e.fields]] {
			e.shows[r]++
			e.clicks[r] += clicked
		}
	}
}

func (e *engine) inputs(b *reader.Batch, step int64) *model.Inputs {
	return &model.Inputs{
		N: b.N, Rows: e.values, Offsets: b.Offsets, Index: b.Index, BagWeights: b.BagWeights,
		Dense: b.Dense, Labels: b.Labels, Weights: b.Weights, Step: step,
	}
}

// memoryBytes is what the engine takes at present, without the dense parameters.
func (e *engine) memoryBytes() int64 {
	rows := 4 * int64(cap(e.values)+cap(e.shows)+cap(e.clicks))
	return e.model.MemoryBytes() + rows + 4*int64(cap(e.values)) // as much again for gradients of rows
}

func (e *engine) grow(u int) {
	if cap(e.shows) < u {
		n := u + u/4
		e.values = make([]float32, n*e.layout.ValueDim)
		e.shows = make([]uint32, n)
		e.clicks = make([]float32, n)
		e.admitted = make([]bool, n)
	}
	e.values = e.values[:u*e.layout.ValueDim]
	e.shows, e.clicks, e.admitted = e.shows[:u], e.clicks[:u], e.admitted[:u]
}
