package kerneltest

import (
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/half"
	"aibox/internal/kernel"
)

// rows is a table on the device, a mini-batch of its rows, and where these occur.
type rows struct {
	kernels.Table
	kernels.TableBatch
	all      *array
	index    []int
	examples int
	starts   []int32
	bags     []int32
	weights  []float32 // nil: none

	update kernels.RowUpdate
}

// ints makes an array of one row of integers.
func (r *rig) ints(values []int32) gpu.Region {
	r.Helper()
	words := make([]float32, len(values))
	for i, v := range values {
		words[i] = math.Float32frombits(uint32(v))
	}
	return r.floats(words).region()
}

// longs makes an array of one row of words of 64 bits.
func (r *rig) longs(values []uint64) gpu.Region {
	r.Helper()
	var words []float32
	for _, v := range values {
		words = append(words, math.Float32frombits(uint32(v)), math.Float32frombits(uint32(v>>32)))
	}
	return r.floats(words).region()
}

// rows draws a table of n rows, and a mini-batch with some of them.
func (r *rig) rows(n int) *rows {
	r.Helper()
	t := &rows{examples: 1 + r.IntN([]int{40, 120}[r.IntN(2)])}
	t.Values, t.Format, t.Decays, t.Fields = 1+r.IntN(20), kernels.Format(r.IntN(3)), r.IntN(2) == 0, 1+r.IntN(5)
	formula := func() kernel.Formula {
		return []kernel.Formula{kernel.FormulaSGD, kernel.FormulaAdagrad, kernel.FormulaRowwiseAdagrad, kernel.FormulaAdam, kernel.FormulaFTRL}[r.IntN(5)]
	}
	t.update = kernels.RowUpdate{First: formula(), Rest: formula(), Split: r.IntN(2) == 0}
	if r.IntN(3) == 0 { // so that threads can work on 4 values
		t.Values, t.Format, t.Decays, t.update.Split = 4*(1+r.IntN(5)), kernels.Float32, false, false
	}
	rest := t.Values
	if t.update.Split {
		t.State, rest = t.update.First.Slots(), rest-1
	}
	if t.update.Rest == kernel.FormulaRowwiseAdagrad {
		rest = 1
	}
	t.State += rest * t.update.Rest.Slots()
	if t.Decays {
		t.State++
	}
	words := t.Words()
	var content []float32
	for i := range n * words {
		switch k := i%words - (words - 4 - t.State); { // of the state
		case k < 0 && t.Format != kernels.Float32:
			content = append(content, math.Float32frombits(r.Uint32()))
		case k < 0:
			content = append(content, r.plain())
		case k == t.State-1 && t.Decays:
			content = append(content, math.Float32frombits([]uint32{0, 1 + r.Uint32N(2000), r.Uint32()}[r.IntN(3)]))
		case k < t.State:
			content = append(content, r.Float32())
		case k < t.State+2:
			content = append(content, 9*r.Float32())
		case k == t.State+2:
			content = append(content, math.Float32frombits(r.Uint32N(40)))
		default:
			content = append(content, math.Float32frombits([]uint32{0, 1, 2, math.MaxUint32 - 1}[r.IntN(4)]))
		}
	}
	t.all = r.floats(content)
	t.Table.Rows = t.all.region()
	var index []int32
	for _, i := range r.Perm(n)[:1+r.IntN(n)] {
		index, t.index = append(index, int32(i)), append(t.index, i)
	}
	t.TableBatch.Rows, t.Index = len(index), r.ints(index)
	r.occur(t)
	return t
}

// occur draws where rows occur.
func (r *rig) occur(t *rows) {
	weighted := r.IntN(2) == 0
	for range t.TableBatch.Rows {
		t.starts = append(t.starts, int32(len(t.bags)))
		step := []int{2, 2 * t.examples * t.Fields}[r.IntN(6)/5^1]
		for b := r.IntN(9); b < t.examples*t.Fields; b += r.IntN(step) {
			t.bags = append(t.bags, int32(b))
			if weighted {
				t.weights = append(t.weights, r.plain())
			}
		}
	}
	t.starts = append(t.starts, int32(len(t.bags)))
	t.Starts, t.Bags = r.ints(t.starts), r.ints(t.bags)
	if t.weights != nil {
		t.Weights = r.floats(t.weights).region()
	}
}

// pieces makes work memory for sums of so many columns.
func (r *rig) pieces(t *rows, columns int) gpu.Region {
	return r.vector(kernels.PieceBytes(len(t.bags), columns)/4, r.garbage).region()
}

// clicks makes work memory for counting clicks.
func (r *rig) clicks(t *rows) gpu.Region {
	return r.vector(kernels.ClickBytes(len(t.bags))/4, r.garbage).region()
}

// word returns word k of row i of the mini-batch, as it was.
func (t *rows) word(i, k int) float32 { return t.all.row(0)[t.index[i]*t.Words()+k] }

func (t *rows) bits(i, k int) uint32 { return math.Float32bits(t.word(i, k)) }

// value returns value k of row i of the mini-batch, as it was.
func (t *rows) value(i, k int) float32 {
	switch t.Format {
	case kernels.Float16:
		return half.FromFloat16(uint16(t.bits(i, k/2) >> (k % 2 * 16)))
	case kernels.BFloat16:
		return half.FromBFloat16(uint16(t.bits(i, k/2) >> (k % 2 * 16)))
	}
	return t.word(i, k)
}

var _ = add("collect rows", func(r *rig) {
	t := r.rows(1 + r.IntN(600))
	c := kernels.Statistics{Day: r.Uint32N(40), ShowDecay: []float32{1, 0.9}[r.IntN(2)], MinOccurrences: r.Uint32N(4)}
	labels := r.vector(t.examples, func() float32 { return float32(r.IntN(2)) })
	admitted, inferred := r.vector(t.TableBatch.Rows, r.garbage), r.vector(t.TableBatch.Rows, r.garbage)
	r.must(r.k.Admit(r.s, &t.Table, &t.TableBatch, c.MinOccurrences, inferred.region()))
	flag, words := r.IntN(4)/3, t.Words()
	r.must(r.k.Collect(r.s, r.words(uint32(flag)).region(), &t.Table, &t.TableBatch, c, labels.region(), admitted.region(), r.clicks(t)))
	row := map[int]int{}
	for i, at := range t.index {
		row[at] = i
	}
	count := func(i int) uint32 {
		n, shows := t.bits(i, words-1), uint32(t.starts[i+1]-t.starts[i])
		return n + min(shows, math.MaxUint32-n)
	}
	one := func(b bool) float32 {
		if b {
			return math.Float32frombits(1)
		}
		return 0
	}
	r.equal("Admit", inferred, func(_, i int) float32 { n := t.bits(i, words-1); return one(n > 0 && n >= c.MinOccurrences) })
	r.equal("Collect", admitted, func(_, i int) float32 { return one(count(i) >= c.MinOccurrences) })
	r.check("statistics", t.all, func(got float32, _, j int) (string, bool) {
		was, k := t.all.value(0, j), j%words-words+4
		i, used := row[j/words]
		exactly := func(want uint32) (string, bool) { return fmt.Sprintf("%#x", want), math.Float32bits(got) == want }
		switch {
		case !used || k < 0 || flag != 0:
			return exactly(math.Float32bits(was))
		case k == 2:
			return exactly(c.Day)
		case k == 3:
			return exactly(count(i))
		}
		want := float64(was)
		if seen := t.bits(i, words-2); c.Day > seen && t.bits(i, words-1) > 0 {
			want *= math.Pow(float64(c.ShowDecay), float64(c.Day-seen))
		}
		for _, b := range t.bags[t.starts[i]:t.starts[i+1]] {
			if k == 0 {
				want++
			} else {
				want += float64(labels.value(0, int(b)/t.Fields))
			}
		}
		return fmt.Sprint(want), math.Abs(float64(got)-want) <= 1e-6*(1+want)
	})
})

// factors draws what the rows of the mini-batch are multiplied by; none if they do not decay.
func (r *rig) factors(t *rows) (a *array, region gpu.Region) {
	if !t.Decays {
		return nil, gpu.Region{}
	}
	a = r.vector(4*t.TableBatch.Rows, func() float32 { return []float32{0, 1, r.plain()}[r.IntN(3)] })
	return a, a.region()
}

// multiplied is v by the pair of factors from place at on.
func multiplied(a *array, at int, v float32) float32 {
	if less := a.value(0, at); less != 0 {
		return v + float32(v*less)
	}
	return v * a.value(0, at+1)
}

// admits draws which rows are used.
func (r *rig) admits(t *rows) *array {
	return r.vector(t.TableBatch.Rows, func() float32 { return math.Float32frombits(r.Uint32N(4)/3 ^ 1) })
}

var _ = add("gather rows", func(r *rig) {
	t := r.rows(1 + r.IntN(100))
	admitted := r.admits(t)
	factors, region := r.factors(t)
	values := r.vector(t.TableBatch.Rows*t.Values, r.garbage)
	r.must(r.k.Gather(r.s, &t.Table, &t.TableBatch, admitted.region(), region, values.region()))
	r.equal("Gather", values, func(_, at int) float32 {
		i, k := at/t.Values, at%t.Values
		switch v := t.value(i, k); {
		case math.Float32bits(admitted.value(0, i)) == 0:
			return 0
		case !t.Decays:
			return v
		default:
			return multiplied(factors, 4*i+2*min(k, 1), v)
		}
	})
})

var _ = add("pool rows", func(r *rig) {
	n, width, examples := 1+r.IntN(50), []int{1 + r.IntN(20), 4 * (1 + r.IntN(5))}[r.IntN(2)], r.rowCount()
	b := kernels.Bags{Fields: 1 + r.IntN(4)}
	offsets, index := []int32{0}, []int32(nil)
	weighted, single := r.IntN(2) == 0, r.IntN(3) == 0
	var weights []float32
	for range examples * b.Fields {
		rows := 1
		if !single {
			rows = r.IntN(4)
		}
		for range rows {
			index = append(index, int32(r.IntN(n)))
			weights = append(weights, r.plain()*float32(r.IntN(2)))
		}
		offsets = append(offsets, int32(len(index)))
	}
	b.Index = r.ints(index)
	if !single || r.IntN(2) == 0 {
		b.Offsets = r.ints(offsets)
	}
	if weighted {
		b.Weights = r.floats(weights).region()
	}
	var averaged []int32
	var means *array
	if r.IntN(2) == 0 {
		for range b.Fields {
			averaged = append(averaged, r.Int32N(2))
		}
		means = r.vector(examples*b.Fields, r.garbage)
		b.Averaged, b.Means = r.ints(averaged), means.region()
	}
	values := r.vector(n*width, r.any())
	y := r.matrix(examples, b.Fields*width, r.garbage)
	r.must(r.k.Pool(r.s, y.Matrix, &b, values.region(), width, examples))
	factor := func(bag int) float32 {
		lo, hi := offsets[bag], offsets[bag+1]
		if averaged == nil || averaged[bag%b.Fields] == 0 || hi == lo || hi-lo == 1 && !weighted {
			return 1
		}
		total := float32(hi - lo)
		if weighted {
			total = 0
			for _, w := range weights[lo:hi] {
				total += w
			}
		}
		if total == 0 {
			return 0
		}
		return 1 / total
	}
	if means != nil {
		r.equal("means", means, func(_, bag int) float32 { return factor(bag) })
	}
	r.equal("Pool", y, func(i, j int) float32 {
		bag := i*b.Fields + j/width
		lo, hi := offsets[bag], offsets[bag+1]
		if hi-lo == 1 && !weighted {
			return values.value(0, int(index[lo])*width+j%width)
		}
		sum := float32(0)
		for at := lo; at < hi; at++ {
			w := float32(1)
			if weighted {
				w = weights[at]
			}
			sum = kernel.FMA(w, values.value(0, int(index[at])*width+j%width), sum)
		}
		return sum * factor(bag)
	})
})

var _ = add("gradients of rows", func(r *rig) {
	t := r.rows(1 + r.IntN(100))
	dy := r.matrix(t.examples, t.Fields*t.Values, r.any())
	var region gpu.Region
	var means *array
	if r.IntN(2) == 0 {
		means = r.vector(t.examples*t.Fields, r.plain)
		region = means.region()
	}
	grads := r.vector(t.TableBatch.Rows*t.Values, r.garbage)
	r.must(r.k.RowGradients(r.s, grads.region(), &t.TableBatch, dy.Matrix, region, t.Values, t.examples, r.pieces(t, t.Values)))
	r.equal("RowGradients", grads, func(_, at int) float32 {
		i, k, sum, total := at/t.Values, at%t.Values, float32(0), float32(math.Copysign(0, -1))
		for p := t.starts[i]; p < t.starts[i+1]; p++ {
			if at := p - t.starts[i]; at > 0 && at%kernel.SumPiece == 0 {
				total, sum = total+sum, 0
			}
			bag, factor := int(t.bags[p]), float32(1)
			if means != nil {
				factor = means.value(0, bag)
			}
			if t.weights != nil {
				factor *= t.weights[p]
			}
			sum = kernel.FMA(factor, dy.value(bag/t.Fields, bag%t.Fields*t.Values+k), sum)
		}
		return total + sum
	})
})
