package kerneltest

import (
	"encoding/binary"
	"math"
	"slices"

	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/internal/kernel"
)

// rowUpdate is what a trial of UpdateRows has drawn, on the host.
type rowUpdate struct {
	*rows
	groups   []int32 // nil: one
	updates  []kernel.Update
	rounding half.Rounding
	clock    float32
	factors  [4]float32
	keys     []uint64
	values   *array
	grads    *array
}

// rowUpdate draws the update of the rows of a mini-batch.
func (r *rig) rowUpdate(t *rows) *rowUpdate {
	u := &rowUpdate{rows: t, rounding: half.NewRounding(r.Uint64(), 3), clock: math.Float32frombits(r.Uint32N(2000))}
	u.factors = [4]float32{[]float32{0, -0.01}[r.IntN(2)], 0.9, 0, []float32{1, 0.9}[r.IntN(2)]}
	groups := 1
	if r.IntN(2) == 0 {
		groups = 1 + r.IntN(3)
		for range t.Fields {
			u.groups = append(u.groups, r.Int32N(int32(groups)))
		}
		t.update.Groups = r.ints(u.groups)
	}
	var constants []float32
	for range groups {
		for _, f := range []kernel.Formula{t.update.First, t.update.Rest} {
			c := r.update(f)
			c.Shrink = 1
			u.updates = append(u.updates, c)
			constants = kernels.AppendUpdate(constants, &c)
		}
	}
	t.update.Constants = r.floats(constants).region()
	var step []uint64
	for b := kernels.AppendRowStep(nil, uint64(u.rounding), u.clock, u.factors); len(b) > 0; b = b[8:] {
		step = append(step, binary.LittleEndian.Uint64(b))
	}
	t.update.Step = r.longs(step)
	for range t.all.Columns / t.Words() {
		u.keys = append(u.keys, r.Uint64())
	}
	t.update.Keys = r.longs(u.keys)
	value := r.any()
	if t.Format != kernels.Float32 {
		value = r.plain // a NaN of 16 bits has the sign of one of 32, which devices choose
	}
	size := []float32{1, 70000, 1e-6}[r.IntN(3)] // some are larger than float16 holds, or denormal there
	sized := func() float32 { return size * value() }
	gradient := value
	if size < 1 {
		gradient = sized
	}
	u.values, u.grads = r.vector(t.TableBatch.Rows*t.Values, sized), r.vector(t.TableBatch.Rows*t.Values, gradient)
	return u
}

// updated returns what row i of the mini-batch becomes, and its values before they are rounded.
func (u *rowUpdate) updated(i int) (row, values []float32) {
	words := u.Words()
	row = slices.Clone(u.all.row(0)[u.index[i]*words:][:words])
	values = slices.Clone(u.values.row(0)[i*u.Values:][:u.Values])
	grads := u.grads.row(0)[i*u.Values:][:u.Values]
	state := row[words-4-u.State : words-4]
	if u.Decays {
		for k := range values {
			less, factor := u.factors[2*min(k, 1)], u.factors[2*min(k, 1)+1]
			if less != 0 {
				values[k] += float32(values[k] * less)
			} else {
				values[k] *= factor
			}
		}
		state[len(state)-1] = u.clock
		state = state[:len(state)-1]
	}
	group := 0
	if last := u.starts[i+1]; u.groups != nil && last > u.starts[i] {
		group = int(u.groups[int(u.bags[last-1])%u.Fields])
	}
	step := func(c *kernel.Update, values, grads, state []float32) {
		n := min(len(values), len(state))
		c.Step(values, grads, state[:n], state[n:])
	}
	first, rest := &u.updates[2*group], &u.updates[2*group+1]
	if n := u.update.First.Slots(); u.update.Split {
		step(first, values[:1], grads[:1], state[:n])
		if u.Values > 1 {
			step(rest, values[1:], grads[1:], state[n:])
		}
	} else {
		step(rest, values, grads, state)
	}
	random := u.rounding.Bits(u.keys[u.index[i]])
	switch u.Format {
	case kernels.Float32:
		copy(row, values)
	case kernels.Float16:
		half.PackFloat16(row[:half.Words(u.Values)], values, random)
	case kernels.BFloat16:
		half.PackBFloat16(row[:half.Words(u.Values)], values, random)
	}
	return row, values
}

var _ = add("update rows", func(r *rig) {
	for range 4 {
		t := r.rows(1 + r.IntN(100))
		for t.update.Split && t.Values == 1 {
			t = r.rows(1 + r.IntN(100))
		}
		u, admitted, flag := r.rowUpdate(t), r.admits(t), uint32(r.IntN(6)/5)
		overflowed := r.words(kernels.NoRow)
		r.must(r.k.UpdateRows(r.s, r.words(flag).region(), overflowed.region(), &t.Table, &t.TableBatch, &t.update, admitted.region(), u.values.region(), u.grads.region()))
		want, first := slices.Clone(t.all.row(0)), uint32(kernels.NoRow)
		for i := range t.index {
			if flag != 0 || math.Float32bits(admitted.value(0, i)) == 0 {
				continue
			}
			row, values := u.updated(i)
			copy(want[t.index[i]*t.Words():], row)
			if first == kernels.NoRow && slices.ContainsFunc(values, func(v float32) bool { return v-v != 0 }) {
				first = uint32(i)
			}
		}
		r.equal("UpdateRows", t.all, func(_, j int) float32 { return want[j] })
		r.equal("overflowed", overflowed, func(_, _ int) float32 { return math.Float32frombits(first) })
	}
	r.sums()
})

// sums updates rows whose optimizer has one sum for all values, so that each round launches all kernels.
func (r *rig) sums() {
	t := r.rows(1 + r.IntN(20))
	t.Table = kernels.Table{Rows: t.Table.Rows, Values: t.Words() - 5, State: 1}
	t.update = kernels.RowUpdate{Rest: kernel.FormulaRowwiseAdagrad}
	u, overflowed := r.rowUpdate(t), r.words(kernels.NoRow)
	r.must(r.k.UpdateRows(r.s, r.words(0).region(), overflowed.region(), &t.Table, &t.TableBatch, &t.update, r.admits(t).region(), u.values.region(), u.grads.region()))
}
