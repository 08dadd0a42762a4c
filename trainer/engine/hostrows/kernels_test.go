package hostrows

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kernelrig"
	"aibox/internal/half"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/program"
)

// TestRowKernels: rows on a device go through steps of training with the bits that they have on the
// host, for all optimizers, formats, ways of pooling and of decay.
func TestRowKernels(t *testing.T) {
	kernelrig.Each(t, 150, func(r *kernelrig.Rig, rng *rand.Rand) {
		b := newRowsBench(r, rng)
		for range 6 {
			b.step()
			if r.Failed() {
				r.Fatal(b.what)
			}
		}
	})
}

// rowsBench has the same rows on the host and on a device.
type rowsBench struct {
	*kernelrig.Rig
	rng   *rand.Rand
	what  string
	e     *Rows
	bags  Bags
	mean  bool
	sums  []bool
	table *kernels.Table
	rows  int
	keys  gpu.Region

	flag gpu.Region
	dy   []float32
}

func newRowsBench(r *kernelrig.Rig, rng *rand.Rand) *rowsBench {
	r.Helper()
	b := &rowsBench{Rig: r, rng: rng, rows: 1 + rng.IntN(40), mean: rng.IntN(2) == 0}
	l := sparsetable.Layout{ValueDim: 1 + rng.IntN(9), Format: sparsetable.ValueFormat(rng.IntN(3))}
	rows, err := randomRowOptimizer(rng, l.ValueDim)
	r.Must(err)
	now := int64(1000)
	timeline, err := randomTimeline(rng, rows, now)
	r.Must(err)
	l.StateDim = rows.StateDim()
	if timeline != nil {
		l.StateDim++
	}
	fields := 1 + rng.IntN(4)
	var spaces []string
	for range fields {
		spaces = append(spaces, fmt.Sprint(rng.IntN(3)))
		b.sums = append(b.sums, rng.IntN(2) == 0)
	}
	if rng.IntN(2) == 0 {
		b.sums = nil // all fields are averaged, if any is
	}
	b.e = New(engine.Config{
		Network: &program.Network{Fields: fields, RowDim: l.ValueDim}, Layout: l, Rows: rows, Seed: rng.Uint64(),
		Day: 20, ShowDecay: []float32{1, 0.9}[rng.IntN(2)], MinOccurrences: uint32(rng.IntN(4)),
	}, &engine.State{Step: now, RowSteps: engine.NewRowSteps(spaces), Decay: timeline})
	began := make([]int64, fields)
	for i := range began {
		began[i] = 300 * rng.Int64N(3)
	}
	text, err := json.Marshal(began)
	r.Must(err)
	r.Must(json.Unmarshal(text, b.e.state.RowSteps))
	b.what = fmt.Sprintf("%v, optimizer %+v, mean %v but for %v", l, rows, b.mean, b.sums)

	table, err := sparsetable.Open(context.Background(), sparsetable.Options{Layout: l, Init: func(key uint64, row []float32) { b.fill(row, key) }})
	r.Must(err)
	r.Cleanup(func() { _ = table.Close() })
	for i := range b.rows {
		b.e.pass.Keys = append(b.e.pass.Keys, uint64(i)*0x123456789+5)
	}
	b.e.pass.Rows, err = table.Pull(context.Background(), b.e.pass.Keys, sparsetable.PullCreate)
	r.Must(err)
	r.Cleanup(b.e.pass.Rows.Release)

	b.table = &kernels.Table{Values: l.ValueDim, State: l.StateDim, Format: kernels.Format(l.Format), Decays: timeline != nil}
	if b.table.Words() != l.Words() {
		r.Fatalf("rows of %d words on the device, %d on the host", b.table.Words(), l.Words())
	}
	var words []float32
	for i := range b.rows {
		words = append(words, b.e.pass.Rows.Row(i)...)
	}
	b.table.Rows, b.keys, b.flag = kernelrig.Put(r, words), kernelrig.Put(r, b.e.pass.Keys), kernelrig.Put(r, []int32{0})
	return b
}

// same fails the test unless the device has the bits of the host, or both have NaN.
func (b *rowsBench) same(what string, device gpu.Region, host []float32) {
	b.Helper()
	for i, got := range kernelrig.Get[float32](b.Rig, device) {
		if v := host[i]; math.Float32bits(got) != math.Float32bits(v) && (got == got || v == v) {
			b.Errorf("%s: word %d is %v (%#x) on the device, %v (%#x) on the host", what, i, got, math.Float32bits(got), v, math.Float32bits(v))
			return
		}
	}
}

// step trains a mini-batch with drawn gradients, and before that perhaps infers it.
func (b *rowsBench) step() {
	e, s, x := b.e, b.e.state, b.batch()
	d := b.upload(x)
	dim, fields, u := e.Layout.ValueDim, e.Network.Fields, len(x.Rows)
	e.set(x)
	values, admitted := b.Alloc(4*u*dim), b.Alloc(4*u)
	if b.rng.IntN(2) == 0 {
		e.gatherOnly(0, u)
		b.Must(b.Admit(b.Stream, b.table, &d.batch, e.MinOccurrences, admitted))
		b.gather(d, admitted, values)
	}
	collect := func() {
		b.Must(b.Collect(b.Stream, b.flag, b.table, &d.batch, kernels.Statistics{Day: e.Day, ShowDecay: e.ShowDecay, MinOccurrences: e.MinOccurrences}, d.labels, admitted, b.Alloc(kernels.ClickBytes(len(x.RowBags)))))
	}
	kernelrig.Set(b.Rig, b.flag, []int32{1})
	collect()
	b.sameRows("with the flag")
	kernelrig.Set(b.Rig, b.flag, []int32{0})
	collect()
	e.Collect(x)
	b.gather(d, admitted, values)

	// Pool on both sides, in columns of a larger matrix.
	const column, more = 2, 3
	stride := fields*dim + more
	b.bags = Bags{fields: fields, dim: dim, mean: b.mean, sums: b.sums, notes: b.mean}
	in := (&engine.Batch{Batch: x}).Inputs(e.values, s.Step)
	b.bags.Set(&in)
	pooled := make([]float32, x.N*fields*dim)
	b.bags.Pool(0, x.N, pooled, fields*dim, e.values)
	y := kernels.Matrix{Memory: b.Alloc(4 * x.N * fields * dim).Memory, Columns: fields * dim, Stride: fields * dim}
	b.Must(b.Pool(b.Stream, y, &d.bags, values, dim, x.N))
	b.same("the pooled rows", y.Region(x.N), pooled)
	if b.mean {
		b.same("what sums are multiplied by", d.bags.Means, b.bags.factors)
	}

	// Gradients are drawn.
	b.dy = b.dy[:0]
	for range x.N * stride {
		b.dy = append(b.dy, float32(b.rng.NormFloat64()))
	}
	if e.Layout.Format == sparsetable.Float32 && b.rng.IntN(10) == 0 { // a NaN of 16 bits would have a sign that processors choose
		b.dy[b.rng.IntN(len(b.dy))] = float32(math.Inf(1))
	}
	e.bags, e.grads = &b.bags, Gradients{Data: b.dy[column:], Stride: stride}
	dy := kernels.Matrix{Memory: kernelrig.Put(b.Rig, b.dy).Memory, Offset: 4 * column, Columns: fields * dim, Stride: stride}
	grads := b.Alloc(4 * u * dim)
	b.Must(b.RowGradients(b.Stream, grads, &d.batch, dy, d.bags.Means, dim, x.N, b.pieces(x, dim)))
	var want []float32
	for i := range u {
		want = append(want, make([]float32, dim)...)
		b.bags.RowGrad(i, e.grads, want[i*dim:], make([]float32, dim))
	}
	b.same("the gradients", grads, want)
	b.update(d, x, admitted, values, grads)
}

// pieces is work memory for sums of so many columns.
func (b *rowsBench) pieces(x *reader.Batch, columns int) gpu.Region {
	return b.Alloc(kernels.PieceBytes(len(x.RowBags), columns))
}

// update takes the step that step has prepared.
func (b *rowsBench) update(d *deviceBatch, x *reader.Batch, admitted, values, grads gpu.Region) {
	e, s, u := b.e, b.e.state, len(x.Rows)
	s.Step++
	s.RowSteps.Prepare(e.Rows, s.Step, 0.7)
	e.decay.next()
	e.rounding = sparsetable.NewRounding(e.Seed, uint64(s.Step))

	update := &kernels.RowUpdate{Groups: kernelrig.Put(b.Rig, s.RowSteps.AppendGroups(nil)), Step: b.rowStep()}
	if e.Layout.Format != sparsetable.Float32 {
		update.Keys = b.keys
	}
	var constants []float32
	for _, c := range s.RowSteps.Updates() {
		update.First, update.Rest, update.Split = c.First.Formula, c.Rest.Formula, c.Split
		constants = kernels.AppendUpdate(kernels.AppendUpdate(constants, &c.First), &c.Rest)
	}
	if len(s.RowSteps.Updates()) == 1 {
		update.Groups = gpu.Region{}
	}
	update.Constants = kernelrig.Put(b.Rig, constants)
	overflowed := kernelrig.Put(b.Rig, []uint32{kernels.NoRow})
	launch := func() {
		b.Must(b.UpdateRows(b.Stream, b.flag, overflowed, b.table, &d.batch, update, admitted, values, grads))
	}
	kernelrig.Set(b.Rig, b.flag, []int32{1})
	launch()
	b.sameRows("with the flag")
	kernelrig.Set(b.Rig, b.flag, []int32{0})
	launch()
	e.update(0, u)
	b.sameRows("after the update")
	first := uint32(kernels.NoRow)
	for i := range u {
		values := e.value(i) // of 16-bit rows as they were before they were rounded
		if e.Layout.Format == sparsetable.Float32 {
			values = e.Layout.Values(e.pass.Rows.Row(int(x.Rows[i])))
		}
		if e.admitted[i] && !engine.Finite(values) {
			first = uint32(i)
			break
		}
	}
	if got := kernelrig.Get[uint32](b.Rig, overflowed)[0]; got != first {
		b.Errorf("row %d is the first that is not finite, the device says %d", int32(first), int32(got))
	}
}

// rowStep is what the update of rows depends on.
func (b *rowsBench) rowStep() gpu.Region {
	e := b.e
	return kernelrig.Put(b.Rig, kernels.AppendRowStep(nil, uint64(half.NewRounding(e.Seed, uint64(e.state.Step))), e.decay.clock, e.decay.step.Numbers()))
}

func (b *rowsBench) sameRows(what string) {
	b.Helper()
	var words []float32
	for i := range b.rows {
		words = append(words, b.e.pass.Rows.Row(i)...)
	}
	b.same("the rows "+what, b.table.Rows, words)
}

// gather fills values, and compares them and what is admitted with what the host has gathered.
func (b *rowsBench) gather(d *deviceBatch, admitted, values gpu.Region) {
	b.Helper()
	e, u := b.e, d.batch.Rows
	var factors gpu.Region
	if b.table.Decays {
		factors = b.Alloc(kernels.FactorsBytes * u)
		moment, timeline := kernelrig.Put(b.Rig, e.decay.now.AppendWords(nil)), kernelrig.Put(b.Rig, e.decay.timeline.AppendWords(nil))
		b.Must(b.Settle(b.Stream, b.table, &d.batch, moment, timeline, factors))
	}
	b.Must(b.Gather(b.Stream, b.table, &d.batch, admitted, factors, values))
	for i, a := range kernelrig.Get[int32](b.Rig, admitted) {
		if a != 0 != e.admitted[i] {
			b.Fatalf("row %d is admitted: %d on the device, %v on the host", i, a, e.admitted[i])
		}
	}
	b.same("the gathered values", values, e.values)
	b.sameRows("when they have been gathered")
}
