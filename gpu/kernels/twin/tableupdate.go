package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/internal/kernel"
	"aibox/internal/splitmix"
)

var _ = add(emulated.Kernels{
	"table_sums": {Run: func(b *emulated.Block) {
		if emulated.Slice[int32](b, 0)[0] != 0 {
			return
		}
		u := newRowUpdate(b, 2)
		rowThreads(b, u.rows, func(i int) {
			if u.admitted[i] == 0 {
				return
			}
			state := u.state(tableRow(b, 1, 2, i, u.words))
			if u.split && u.first == kernel.FormulaRowwiseAdagrad {
				u.sum(state, i, 0, 1)
			}
			if u.rest == kernel.FormulaRowwiseAdagrad {
				u.sum(state[u.firstWords:], i, u.from, u.width)
			}
		})
	}},
	"table_update": {Run: func(b *emulated.Block) {
		if emulated.Slice[int32](b, 0)[0] != 0 {
			return
		}
		overflowed, keys := emulated.Slice[uint32](b, 2), emulated.Slice[uint64](b, 3)
		u := newRowUpdate(b, 4)
		rounding := half.Rounding(u.step[0])
		elementsAtOnce(b, u.rows, valueWords(u.width, u.format), b.Int32(24), func(i, w int) {
			if u.admitted[i] == 0 {
				return
			}
			row := tableRow(b, 1, 4, i, u.words)
			state := u.state(row)
			var v [2]float32
			n := min(perWord(u.format), u.width-w*perWord(u.format))
			for h := range n {
				v[h] = u.value(state, i, w*perWord(u.format)+h)
				if math.Float32bits(v[h])&infinity == infinity {
					overflowed[0] = min(overflowed[0], uint32(i))
				}
			}
			if u.decays && w == 0 {
				state[len(state)-1] = math.Float32frombits(uint32(u.step[3]))
			}
			if u.format == kernels.Float32 {
				row[w] = v[0]
				return
			}
			key := keys[emulated.Slice[int32](b, 4)[i]]
			random := rounding.Bits(key) + uint64(w)*splitmix.Step
			if u.format == kernels.Float16 {
				half.PackFloat16(row[w:w+1], v[:n], random)
			} else {
				half.PackBFloat16(row[w:w+1], v[:n], random)
			}
		})
	}},
})

const infinity = 0x7f800000 // the exponent of what is not finite

// rowUpdate is the arguments that table_sums and table_update have in common.
type rowUpdate struct {
	admitted      []int32
	values, grads []float32
	starts, bags  []int32
	groups        []int32 // nil: one group
	constants     []float32
	step          []uint64

	rows, fields, words, width int
	format                     kernels.Format
	stateWords                 int
	decays, split              bool
	first, rest                kernel.Formula
	from, firstWords           int // where the values and the state begin that the first value has no part in
}

// newRowUpdate reads them from argument i on, which is the index of rows.
func newRowUpdate(b *emulated.Block, i int) *rowUpdate {
	u := &rowUpdate{
		admitted: emulated.Slice[int32](b, i+1), values: emulated.Slice[float32](b, i+2), grads: emulated.Slice[float32](b, i+3),
		starts: emulated.Slice[int32](b, i+4), bags: emulated.Slice[int32](b, i+5),
		constants: emulated.Slice[float32](b, i+8), step: emulated.Slice[uint64](b, i+9),
		rows: b.Int32(i + 10), fields: b.Int32(i + 11), words: b.Int32(i + 12), width: b.Int32(i + 13), format: kernels.Format(b.Int32(i + 14)),
		stateWords: b.Int32(i + 15), decays: b.Int32(i+16) != 0, split: b.Int32(i+17) != 0,
		first: kernel.Formula(b.Int32(i + 18)), rest: kernel.Formula(b.Int32(i + 19)),
	}
	if b.Int32(i+7) != 0 {
		u.groups = emulated.Slice[int32](b, i+6)
	}
	if u.split {
		u.from, u.firstWords = 1, u.first.Slots()
	}
	return u
}

// state is that of a row.
func (u *rowUpdate) state(row []float32) []float32 {
	return row[valueWords(u.width, u.format):][:u.stateWords]
}

// update is that of value k of row i.
func (u *rowUpdate) update(i, k int) kernel.Update {
	group, formula := 0, u.rest
	if last := u.starts[i+1]; u.groups != nil && last > u.starts[i] {
		group = int(u.groups[int(u.bags[last-1])%u.fields])
	}
	const words = kernels.UpdateBytes / 4
	c := u.constants[2*group*words:]
	if k < u.from {
		formula = u.first
	} else {
		c = c[words:]
	}
	return kernels.ReadUpdate(formula, c)
}

// settled is value k of row i with the decay of the step.
func (u *rowUpdate) settled(i, k int) float32 {
	v := u.values[i*u.width+k]
	if !u.decays {
		return v
	}
	f := make(factors, 4)
	for j := range f {
		f[j] = math.Float32frombits(uint32(u.step[1+j/2] >> (32 * (j % 2))))
	}
	return f.apply(k, v)
}

// sum adds the mean of the squared gradients of values lo to hi of row i to state[0].
func (u *rowUpdate) sum(state []float32, i, lo, hi int) {
	c := u.update(i, lo)
	sum := float32(0)
	for k := lo; k < hi; k++ {
		d := u.grads[i*u.width+k] + float32(c.L2*u.settled(i, k))
		sum += float32(d * d)
	}
	state[0] += sum / float32(hi-lo)
}

// value is value k of row i after the update. Sums of rows have been updated.
func (u *rowUpdate) value(state []float32, i, k int) float32 {
	c := u.update(i, k)
	w, g := u.settled(i, k), u.grads[i*u.width+k]
	at, next := k, 0 // where the value has its state
	if k >= u.from {
		state, at, next = state[u.firstWords:], k-u.from, u.width-u.from
	}
	if c.Formula == kernel.FormulaRowwiseAdagrad {
		d := g + float32(c.L2*w)
		return w - float32(c.Rate*d)/(kernel.Sqrt(state[0])+c.Epsilon)
	}
	if k < u.from {
		next = 1
	}
	var first, second []float32
	if c.Formula.Slots() > 0 {
		first = state[at:][:1]
	}
	if c.Formula.Slots() > 1 {
		second = state[next+at:][:1]
	}
	v := [1]float32{w}
	c.Step(v[:], []float32{g}, first, second)
	return v[0]
}
