package hostrows

import (
	"fmt"
	"math"
	"sync/atomic"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/optim"
)

// rowGrain is the number of rows that one thread gathers at a time for inference: tens of
// microseconds of work, far more than handing them over costs. For training see byWork.
const rowGrain = 256

// Rows has the rows of a pass and, of these, the U unique rows of the current mini-batch. One
// goroutine uses it.
type Rows struct {
	engine.Config
	state *engine.State
	pass  engine.Pass
	decay rowDecay

	collected
	updating
	tasks
}

// collected are the results of Collect and Gather.
type collected struct {
	batch    *reader.Batch
	values   []float32 // (U, RowDim), as the network sees them
	admitted []bool    // (U)
	clicks   []float32 // of full pieces, by number: see fullPieces
}

// updating are the arguments and results of Update.
type updating struct {
	bags       *Bags
	grads      Gradients
	sums       []float32 // (numbers, RowDim), of full pieces
	rounding   sparsetable.Rounding
	overflowed atomic.Int64 // 1 + the index of the first row whose update was not finite, or 0
	scratch    scratchPool
}

// tasks run on all threads. They are bound once so that a step allocates nothing.
type tasks struct{ countTask, collectTask, gatherTask, sumTask, updateTask func(lo, hi int) }

// New returns Rows without a pass. Their optimizer continues from state, which must not be
// replaced.
func New(c engine.Config, state *engine.State) *Rows {
	r := &Rows{Config: c, state: state, decay: newRowDecay(state.Decay, c.Rows)}
	r.countTask, r.collectTask, r.gatherTask = r.countPieces, r.byWork(r.collect), r.gatherOnly
	r.sumTask, r.updateTask = r.sumPieces, r.byWork(r.update)
	return r
}

// Begin starts a pass.
func (r *Rows) Begin(p engine.Pass) { r.pass = p }

// End ends the pass.
func (r *Rows) End() {
	pass := r.pass
	r.pass, r.batch, r.bags, r.grads = engine.Pass{}, nil, nil, Gradients{}
	pass.HasEnded()
}

// Bytes returns how much memory r has allocated.
func (r *Rows) Bytes() int64 {
	return 4*int64(cap(r.values)+cap(r.clicks)+cap(r.sums)) + int64(cap(r.admitted)) + r.scratch.bytes()
}

// Collect updates the statistics of the rows of a mini-batch, and returns their values (U, RowDim)
// after the last step.
func (r *Rows) Collect(b *reader.Batch) []float32 {
	r.set(b)
	r.clicks = engine.Resize(r.clicks, len(b.RowBags)/kernel.SumPiece)
	r.onOccurrences(r.countTask, r.collectTask)
	return r.values
}

// Gather returns the values of the rows of a mini-batch for inference.
func (r *Rows) Gather(b *reader.Batch) []float32 {
	r.set(b)
	kernel.Parallel(len(b.Rows), rowGrain, r.gatherTask)
	return r.values
}

// set sets the mini-batch.
func (r *Rows) set(b *reader.Batch) {
	u := len(b.Rows)
	r.batch, r.values, r.admitted = b, engine.Resize(r.values, u*r.Layout.ValueDim), engine.Resize(r.admitted, u)
	r.decay.until(r.state.Step)
}

// Update applies the gradients of bags to the rows that Collect has read. The step is the state's,
// which has been counted already; scale multiplies the learning rate. The error wraps
// program.ErrNotFinite if the values of a row are no longer finite.
func (r *Rows) Update(bags *Bags, grads Gradients, scale float32) error {
	r.sums = engine.Resize(r.sums, len(r.batch.RowBags)/kernel.SumPiece*r.Layout.ValueDim)
	grads.pieces = r.sums
	r.bags, r.grads = bags, grads
	r.overflowed.Store(0)
	r.state.RowSteps.Prepare(r.Config.Rows, r.state.Step, scale)
	r.decay.next()
	r.rounding = sparsetable.NewRounding(r.Seed, uint64(r.state.Step))
	r.onOccurrences(r.sumTask, r.updateTask)
	if i := r.overflowed.Load(); i > 0 {
		return engine.UpdateError(fmt.Sprintf("the row of key %x", r.pass.Keys[r.batch.Rows[i-1]]), r.state.Step)
	}
	return nil
}

// seen returns how often row i occurs in the mini-batch, and how often with label 1. The latter is
// exact in any order of additions.
func (r *Rows) seen(i int) (shows uint32, clicks float32) {
	first, end := int(r.batch.RowStarts[i]), int(r.batch.RowStarts[i+1])
	at := first
	if end-first > kernel.SumPiece {
		for ; at+kernel.SumPiece <= end; at += kernel.SumPiece {
			clicks += r.clicks[at/kernel.SumPiece]
		}
	}
	return uint32(end - first), clicks + r.clicksOf(at, end)
}

// clicksOf counts the occurrences from lo to hi that have label 1.
func (r *Rows) clicksOf(lo, hi int) (clicks float32) {
	fields := int32(r.Network.Fields)
	for _, bag := range r.batch.RowBags[lo:hi] {
		clicks += r.batch.Labels[bag/fields]
	}
	return clicks
}

// value returns the values of row i as the network sees them.
func (r *Rows) value(i int) []float32 {
	dim := r.Layout.ValueDim
	return r.values[i*dim:][:dim]
}

// row returns row i, and prefetches a later one.
func (r *Rows) row(i int) []float32 {
	rows := r.batch.Rows
	if next := i + prefetchAhead; next < len(rows) {
		kernel.Prefetch(r.pass.Rows.Row(int(rows[next])))
	}
	return r.pass.Rows.Row(int(rows[i]))
}

// gather copies the values of row into position i of r.values, as the network sees them.
func (r *Rows) gather(i int, row []float32) {
	dst := r.value(i)
	if r.admitted[i] {
		r.Layout.LoadValues(dst, row)
		r.decay.settle(dst, r.Layout.State(row))
	} else {
		clear(dst)
	}
}

// collect updates the statistics of rows lo to hi and gathers their values.
func (r *Rows) collect(lo, hi int) {
	for i := lo; i < hi; i++ {
		row := r.row(i)
		st := r.Layout.Stats(row)
		if st.Count > 0 && r.ShowDecay != 1 && r.Day > st.LastSeen {
			f := sparsetable.Decay(r.ShowDecay, r.Day-st.LastSeen)
			st.Show = float32(float64(st.Show) * f)
			st.Click = float32(float64(st.Click) * f)
		}
		shows, clicks := r.seen(i)
		st.Show += float32(shows)
		st.Click += clicks
		st.LastSeen = r.Day
		st.Count += min(shows, math.MaxUint32-st.Count)
		r.Layout.SetStats(row, st)
		r.admitted[i] = st.Count >= r.MinOccurrences
		r.gather(i, row)
	}
}

// gatherOnly gathers the values of rows lo to hi for inference.
func (r *Rows) gatherOnly(lo, hi int) {
	for i := lo; i < hi; i++ {
		row := r.row(i)
		count := r.Layout.Stats(row).Count
		r.admitted[i] = count > 0 && count >= r.MinOccurrences
		r.gather(i, row)
	}
}

// update applies the gradients to rows lo to hi, which collect has read. 16-bit values are updated
// as float32 in r.values, and then rounded into their row with random bits of this step. A row
// whose values are no longer finite is recorded: it may not occur again in this job, so no other
// place may find it.
func (r *Rows) update(lo, hi int) {
	inPlace := r.Layout.Format == sparsetable.Float32
	dim := r.Layout.ValueDim
	scratch := r.scratch.take(2 * dim)
	defer r.scratch.put(scratch)
	grad := scratch[:dim]
	for i := lo; i < hi; i++ {
		if !r.admitted[i] {
			continue
		}
		row := r.row(i)
		r.bags.RowGrad(i, r.grads, grad, scratch[dim:])
		values := r.value(i)
		if inPlace {
			values = r.Layout.Values(row)
			if r.decay.timeline != nil {
				copy(values, r.value(i)) // these are decayed by collect
			}
		}
		state := r.decay.update(values, r.Layout.State(row))
		r.step(i).Update(values, state, grad)
		if !engine.Finite(values) {
			r.overflow(i)
		}
		if !inPlace {
			r.Layout.StoreValues(row, values, r.pass.Keys[r.batch.Rows[i]], r.rounding)
		}
	}
}

// overflow records that the values of row i are not finite.
func (r *Rows) overflow(i int) {
	for n := int64(i) + 1; ; {
		was := r.overflowed.Load()
		if was > 0 && was < n || r.overflowed.CompareAndSwap(was, n) {
			return
		}
	}
}

// step returns the update of row i.
func (r *Rows) step(i int) *optim.RowStep {
	b := r.batch
	field := 0
	if last := b.RowStarts[i+1]; last > b.RowStarts[i] {
		field = int(b.RowBags[last-1]) % r.Network.Fields
	}
	return r.state.RowSteps.Of(field)
}
