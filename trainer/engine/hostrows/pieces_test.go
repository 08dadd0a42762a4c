package hostrows

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/kernel"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// newRows returns n rows of float32, whose values are drawn, as those of a pass.
func newRows(t testing.TB, rng *rand.Rand, fields, dim, n int) *Rows {
	t.Helper()
	rows, err := optim.NewRows(optim.RowConfig{Kind: "adagrad", LearningRate: 0.01, Epsilon: 1e-8}, dim)
	if err != nil {
		t.Fatal(err)
	}
	l := sparsetable.Layout{ValueDim: dim, StateDim: rows.StateDim()}
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{Layout: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Close() })
	r := New(engine.Config{Network: &program.Network{Fields: fields, RowDim: dim}, Layout: l, Rows: rows, ShowDecay: 1, Day: 1, MinOccurrences: 1},
		&engine.State{RowSteps: engine.NewRowSteps(make([]string, fields))})
	pass := engine.Pass{}
	for i := range n {
		pass.Keys = append(pass.Keys, uint64(i))
	}
	if pass.Rows, err = table.Pull(t.Context(), pass.Keys, sparsetable.PullCreate); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pass.Rows.Release)
	r.Begin(pass)
	for i := range n {
		values := l.Values(pass.Rows.Row(i))
		for j := range values {
			values[j] = float32(rng.NormFloat64())
		}
	}
	return r
}

// words are all rows of the pass.
func (r *Rows) words() (all []float32) {
	for i := range r.pass.Keys {
		all = append(all, r.pass.Rows.Row(i)...)
	}
	return all
}

// uneven draws a mini-batch whose rows occur between once and some hundred times, some of them as
// often as one or several pieces are long, or nearly.
func uneven(rng *rand.Rand, fields int, weighted bool) *reader.Batch {
	x := &reader.Batch{Offsets: []int32{0}}
	for row := range 1 + rng.IntN(60) {
		n := 1
		switch rng.IntN(4) {
		case 0:
			n = max(1, rng.IntN(5)*kernel.SumPiece+rng.IntN(3)-1)
		case 1:
			n = 1 + rng.IntN(700)
		case 2:
			n = 1 + rng.IntN(9)
		}
		x.Rows = append(x.Rows, int32(row))
		x.Index = append(x.Index, slices.Repeat([]int32{int32(row)}, n)...)
	}
	rng.Shuffle(len(x.Index), func(i, j int) { x.Index[i], x.Index[j] = x.Index[j], x.Index[i] })
	most := 1 + rng.IntN(6)
	for at := 0; at < len(x.Index); x.N++ {
		x.Labels = append(x.Labels, float32(rng.IntN(2)))
		for range fields {
			at = min(at+rng.IntN(most+1), len(x.Index))
			x.Offsets = append(x.Offsets, int32(at))
		}
	}
	for range x.Index {
		if weighted {
			x.BagWeights = append(x.BagWeights, rng.Float32()-0.2)
		}
	}
	x.Invert(len(x.Rows))
	return x
}

// gradient is what RowGrad computes, the obvious way: all occurrences of a row in the order of the
// mini-batch, the first SumPiece of them, the next, and so on.
func gradient(x *reader.Batch, row int32, fields, dim int, mean bool, dy []float32) []float32 {
	var pieces [][]float32
	n := 0
	for bag := range x.N * fields {
		lo, hi := x.Offsets[bag], x.Offsets[bag+1]
		factor := float32(1)
		if mean && hi > lo {
			total := float32(hi - lo)
			if x.BagWeights != nil {
				total = 0
				for _, w := range x.BagWeights[lo:hi] {
					total += w
				}
			}
			factor = 0
			if total != 0 {
				factor = 1 / total
			}
		}
		for p := lo; p < hi; p++ {
			if x.Index[p] != row {
				continue
			}
			if n%kernel.SumPiece == 0 {
				pieces = append(pieces, make([]float32, dim))
			}
			n++
			f := factor
			if x.BagWeights != nil {
				f *= x.BagWeights[p]
			}
			for j, g := range dy[bag*dim:][:dim] {
				sum := &pieces[len(pieces)-1][j]
				*sum = kernel.FMA(f, g, *sum)
			}
		}
	}
	total := pieces[0]
	for _, piece := range pieces[1:] {
		for j, v := range piece {
			total[j] += v
		}
	}
	return total
}

// TestPieces: rows that occur often get the gradients and the statistics that one gets by going
// through the mini-batch, on any number of threads.
func TestPieces(t *testing.T) {
	defer kernel.SetThreads(0)
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for range 60 {
		fields, dim, weighted, mean := 1+rng.IntN(4), 1+rng.IntN(20), rng.IntN(2) == 0, rng.IntN(2) == 0
		x := uneven(rng, fields, weighted)
		r := newRows(t, rng, fields, dim, len(x.Rows))
		v := &Bags{fields: fields, dim: dim, mean: mean, notes: mean}
		before := r.words()
		dy := make([]float32, x.N*fields*dim)
		for i := range dy {
			dy[i] = float32(rng.NormFloat64())
		}
		r.state.RowSteps.Prepare(r.Config.Rows, 1, 1)
		var want []float32
		for i := range x.Rows {
			row := slices.Clone(r.pass.Rows.Row(i))
			st := sparsetable.RowStats{LastSeen: 1}
			for bag := range x.N * fields {
				for _, in := range x.Index[x.Offsets[bag]:x.Offsets[bag+1]] {
					if in == int32(i) {
						st.Show, st.Click, st.Count = st.Show+1, st.Click+x.Labels[bag/fields], st.Count+1
					}
				}
			}
			r.Layout.SetStats(row, st)
			r.state.RowSteps.Of(0).Update(r.Layout.Values(row), r.Layout.State(row), gradient(x, int32(i), fields, dim, mean, dy))
			want = append(want, row...)
		}
		for _, threads := range []int{1, 2, 3, 7, 16} {
			kernel.SetThreads(threads)
			for i := range x.Rows {
				copy(r.pass.Rows.Row(i), before[i*r.Layout.Words():])
			}
			values := r.Collect(x)
			in := (&engine.Batch{Batch: x}).Inputs(values, 1)
			v.Set(&in)
			v.Pool(0, x.N, make([]float32, x.N*fields*dim), fields*dim, values)
			r.state.Step = 1
			if err := r.Update(v, Gradients{Data: dy, Stride: fields * dim}, 1); err != nil {
				t.Fatal(err)
			}
			for i, got := range r.words() {
				if math.Float32bits(got) != math.Float32bits(want[i]) {
					row := i / r.Layout.Words()
					t.Fatalf("%d threads, weighted %v, mean %v: word %d of a row of %d occurrences is %v, want %v",
						threads, weighted, mean, i%r.Layout.Words(), x.RowStarts[row+1]-x.RowStarts[row], got, want[i])
				}
			}
		}
		r.End()
	}
}
