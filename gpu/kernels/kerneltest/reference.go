package kerneltest

import (
	"math"

	"aibox/gpu/kernels"
)

// The trials of this file compare kernels with formulas in float64; other trials compare their bits
// with float32 on the CPU. near allows each result an error of a millionth, about 16 roundings, of
// scale, the sum of the magnitudes of its terms.

// of is a value and the sum of its terms' magnitudes.
func of(terms ...float64) (value, scale float64) {
	for _, t := range terms {
		value, scale = value+t, scale+math.Abs(t)
	}
	return value, scale
}

func (a *array) exact(i, j int) float64 { return float64(a.value(i, j)) }

func apply64(a kernels.Activation, x float64) float64 {
	switch a {
	case kernels.ReLU:
		return max(x, 0)
	case kernels.LeakyReLU:
		return max(x, 0) + 0.01*min(x, 0)
	case kernels.Tanh:
		return math.Tanh(x)
	case kernels.Sigmoid:
		return 1 / (1 + math.Exp(-x))
	}
	return x
}

// slope64 is the derivative where the activation is y.
func slope64(a kernels.Activation, y float64) float64 {
	switch {
	case a == kernels.ReLU && y <= 0:
		return 0
	case a == kernels.LeakyReLU && y <= 0:
		return 0.01
	case a == kernels.Tanh:
		return 1 - y*y
	case a == kernels.Sigmoid:
		return y * (1 - y)
	}
	return 1
}

var _ = add("activations in float64", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	for a := kernels.Activation(0); a <= kernels.Sigmoid; a++ {
		x, bias, dy := r.matrix(n, c, func() float32 { return 5 * r.plain() }), r.vector(c, r.plain), r.matrix(n, c, r.plain)
		y, dx := r.matrix(n, c, r.garbage), r.matrix(n, c, r.garbage)
		r.must(r.k.Activate(r.s, a, y.Matrix, x.Matrix, n))
		r.near("Activate", y, func(i, j int) (float64, float64) {
			want := apply64(a, x.exact(i, j))
			return want, 1e-2 + math.Abs(want) // tanh of small numbers is a difference
		})
		r.must(r.k.ActivateGrad(r.s, a, dx.Matrix, dy.Matrix, x.Matrix, n))
		r.near("ActivateGrad", dx, func(i, j int) (float64, float64) {
			return x.exact(i, j) * slope64(a, dy.exact(i, j)), 5 * math.Abs(x.exact(i, j)) // 1-y² is up to 3
		})
		r.must(r.k.Epilogue(r.s, a, x.Matrix, bias.Matrix, n))
		r.near("Epilogue", x, func(i, j int) (float64, float64) {
			v, scale := of(x.exact(i, j), bias.exact(0, j))
			want := apply64(a, v)
			return want, 1e-2 + math.Abs(want) + scale
		})
	}
})

var _ = add("element-wise in float64", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	a, b, d, column, bias := r.matrix(n, c, r.plain), r.matrix(n, c, r.plain), r.matrix(n, c, r.plain), r.matrix(n, 1, r.plain), r.vector(c, r.plain)
	y := r.matrix(n, c, r.garbage)
	r.must(r.k.Sum(r.s, y.Matrix, []kernels.Matrix{a.Matrix, b.Matrix, d.Matrix}, n))
	r.near("Sum", y, func(i, j int) (float64, float64) { return of(a.exact(i, j), b.exact(i, j), d.exact(i, j)) })
	y = r.matrix(n, c, r.garbage)
	r.must(r.k.Multiply(r.s, y.Matrix, a.Matrix, b.Matrix, n))
	r.near("Multiply", y, func(i, j int) (float64, float64) { return of(a.exact(i, j) * b.exact(i, j)) })
	y = r.matrix(n, c+1, r.garbage) // one more: the bias is for a column z alone
	x0, xl, more := r.matrix(n, c+1, r.plain), r.matrix(n, c+1, r.plain), r.vector(c+1, r.plain)
	r.must(r.k.Cross(r.s, y.Matrix, x0.Matrix, column.Matrix, xl.Matrix, more.Matrix, n))
	r.near("Cross", y, func(i, j int) (float64, float64) {
		return of(x0.exact(i, j)*column.exact(i, 0), more.exact(0, j), xl.exact(i, j))
	})
	y = r.matrix(n, c, r.garbage)
	r.must(r.k.ScaleVectors(r.s, y.Matrix, column.Matrix, bias.Matrix, c, n))
	r.near("ScaleVectors", y, func(i, j int) (float64, float64) { return of(column.exact(i, 0) * bias.exact(0, j)) })
})

var _ = add("loss in float64", func(r *rig) {
	n, total := r.rowCount(), 1+r.IntN(10_000)
	z, y, w := r.matrix(n, 1, func() float32 { return 10 * r.plain() }), r.matrix(n, 1, func() float32 { return float32(r.IntN(2)) }), r.matrix(n, 1, r.Float32)
	terms, dz := r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage)
	r.must(r.k.Loss(r.s, terms.Matrix, z.Matrix, y.Matrix, w.Matrix, r.words(0).region(), n))
	r.near("Loss", terms, func(i, _ int) (float64, float64) {
		x := z.exact(i, 0)
		value, scale := of(max(x, 0)+math.Log1p(math.Exp(-math.Abs(x))), -y.exact(i, 0)*x)
		return value * w.exact(i, 0), scale * w.exact(i, 0)
	})
	r.must(r.k.LossGrad(r.s, dz.Matrix, z.Matrix, y.Matrix, w.Matrix, total, n))
	r.near("LossGrad", dz, func(i, _ int) (float64, float64) {
		value, scale := of(apply64(kernels.Sigmoid, z.exact(i, 0)), -y.exact(i, 0))
		return value * w.exact(i, 0) / float64(total), scale * w.exact(i, 0) / float64(total)
	})
})

// dots is the product of two vectors of k-th terms.
func dots(n int, term func(k int) float64) (value, scale float64) {
	for k := range n {
		t := term(k)
		value, scale = value+t, scale+math.Abs(t)
	}
	return value, scale
}

var _ = add("rows in float64", func(r *rig) {
	n, f, dim := r.rowCount(), 2+r.IntN(8), 1+r.IntN(20)
	x, other := r.matrix(n, f*dim, r.plain), r.matrix(n, f*dim, r.plain)
	sums, products := r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage)
	r.must(r.k.RowSum(r.s, sums.Matrix, x.Matrix, n))
	r.near("RowSum", sums, func(i, _ int) (float64, float64) {
		return dots(f*dim, func(k int) float64 { return x.exact(i, k) })
	})
	r.must(r.k.RowDot(r.s, products.Matrix, x.Matrix, other.Matrix, n))
	r.near("RowDot", products, func(i, _ int) (float64, float64) {
		return dots(f*dim, func(k int) float64 { return x.exact(i, k) * other.exact(i, k) })
	})
	y, dy := r.matrix(n, pairs(f), r.garbage), r.matrix(n, pairs(f), r.plain)
	r.must(r.k.Interact(r.s, y.Matrix, x.Matrix, dim, n))
	r.near("Interact", y, func(i, j int) (float64, float64) {
		v := 1 // of pair j, the first of which is v(v-1)/2
		for pairs(v+1) <= j {
			v++
		}
		w := j - pairs(v)
		return dots(dim, func(k int) float64 { return x.exact(i, v*dim+k) * x.exact(i, w*dim+k) })
	})
	dx, single := r.matrix(n, f*dim, r.garbage), r.matrix(n, 1, r.plain)
	r.must(r.k.InteractGrad(r.s, dx.Matrix, x.Matrix, dy.Matrix, dim, n))
	mixed := func(i, j int) (float64, float64) {
		return dots(f, func(w int) float64 {
			if w == j/dim {
				return 0
			}
			lo, hi := min(w, j/dim), max(w, j/dim)
			return dy.exact(i, pairs(hi)+lo) * x.exact(i, w*dim+j%dim)
		})
	}
	r.near("InteractGrad", dx, mixed)
	rest, others, dz := r.matrix(n, (f-1)*dim, r.garbage), r.matrix(n, dim, r.plain), r.matrix(n, dim, r.garbage)
	vector := kernels.FirstVector{Activation: kernels.Tanh, Others: others.Matrix, Gradient: dz.Matrix}
	r.must(r.k.InteractGradFirst(r.s, rest.Matrix, vector, x.Matrix, dy.Matrix, dim, n))
	r.near("InteractGradFirst", rest, func(i, j int) (float64, float64) { return mixed(i, j+dim) })
	r.near("InteractGradFirst, the first", dz, func(i, j int) (float64, float64) {
		value, scale := mixed(i, j)
		slope := slope64(kernels.Tanh, x.exact(i, j))
		return (value + others.exact(i, j)) * slope, 5 * (scale + math.Abs(others.exact(i, j))) // 1-y² is up to 3
	})
	dx = r.matrix(n, f*dim, r.garbage)
	r.must(r.k.FMGrad(r.s, dx.Matrix, x.Matrix, single.Matrix, dim, n))
	r.near("FMGrad", dx, func(i, j int) (float64, float64) {
		value, scale := dots(f, func(w int) float64 { return x.exact(i, w*dim+j%dim) })
		return single.exact(i, 0) * (value - x.exact(i, j)), 2 * scale * math.Abs(single.exact(i, 0))
	})
})

var _ = add("normalization in float64", func(r *rig) {
	n, c, count := r.rowCount(), r.columnCount(), 2+r.IntN(600)
	x, y, stats := r.matrix(n, c, r.plain), r.matrix(n, c, r.garbage), statistics(r, c)
	gamma, beta, dgamma, dbeta := r.vector(c, r.plain), r.vector(c, r.plain), r.vector(c, r.plain), r.vector(c, r.plain)
	inverse := func(j int) float64 { return 1 / math.Sqrt(stats.exact(1, j)+1e-5) }
	r.must(r.k.Normalize(r.s, y.Matrix, x.Matrix, gamma.Matrix, beta.Matrix, stats.Matrix, n))
	r.near("Normalize", y, func(i, j int) (float64, float64) {
		g := gamma.exact(0, j) * inverse(j)
		return of(g*x.exact(i, j), -g*stats.exact(0, j), beta.exact(0, j))
	})
	dx, dy := r.matrix(n, c, r.garbage), r.matrix(n, c, r.plain)
	r.must(r.k.NormInput(r.s, dx.Matrix, x.Matrix, gamma.Matrix, stats.Matrix, dgamma.Matrix, dbeta.Matrix, dy.Matrix, n, count))
	r.near("NormInput", dx, func(i, j int) (float64, float64) {
		slope := dgamma.exact(0, j) / float64(count) * inverse(j)
		value, scale := of(dy.exact(i, j), -dbeta.exact(0, j)/float64(count), -slope*x.exact(i, j), slope*stats.exact(0, j))
		return value * gamma.exact(0, j) * inverse(j), scale * math.Abs(gamma.exact(0, j)) * inverse(j)
	})
	running := statistics(r, c)
	r.must(r.k.UpdateRunning(r.s, running.Matrix, stats.Matrix, count, r.words(0).region()))
	r.near("UpdateRunning", running, func(i, j int) (float64, float64) {
		to := stats.exact(i, j)
		if i == 1 {
			to *= float64(count) / float64(count-1)
		}
		return of(0.9*running.exact(i, j), 0.1*to)
	})
})

var _ = add("rows of tables in float64", func(r *rig) {
	t := r.rows(1 + r.IntN(100))
	dy, grads := r.matrix(t.examples, t.Fields*t.Values, r.plain), r.vector(t.TableBatch.Rows*t.Values, r.garbage)
	means := r.vector(t.examples*t.Fields, r.plain)
	r.must(r.k.RowGradients(r.s, grads.region(), &t.TableBatch, dy.Matrix, means.region(), t.Values, t.examples, r.pieces(t, t.Values)))
	r.near("RowGradients", grads, func(_, at int) (float64, float64) {
		i := at / t.Values
		bags := t.bags[t.starts[i]:t.starts[i+1]]
		value, scale := dots(len(bags), func(k int) float64 {
			bag, weight := int(bags[k]), 1.0
			if t.weights != nil {
				weight = float64(t.weights[int(t.starts[i])+k])
			}
			return weight * means.exact(0, bag) * dy.exact(bag/t.Fields, bag%t.Fields*t.Values+at%t.Values)
		})
		return value, scale
	})
	width, examples := 1+r.IntN(20), 1+r.IntN(40)
	values, y := r.vector(50*width, r.plain), r.matrix(examples, width, r.garbage)
	offsets, index, weights := []int32{0}, []int32(nil), []float32(nil)
	for range examples {
		for range r.IntN(5) {
			index, weights = append(index, r.Int32N(50)), append(weights, 0.1+r.Float32())
		}
		offsets = append(offsets, int32(len(index)))
	}
	averages := r.vector(examples, r.garbage)
	b := kernels.Bags{Fields: 1, Offsets: r.ints(offsets), Index: r.ints(index), Weights: r.floats(weights).region(),
		Averaged: r.ints([]int32{1}), Means: averages.region()}
	r.must(r.k.Pool(r.s, y.Matrix, &b, values.region(), width, examples))
	r.near("Pool", y, func(i, j int) (float64, float64) {
		lo, hi := offsets[i], offsets[i+1]
		value, scale := dots(int(hi-lo), func(k int) float64 {
			at := int(lo) + k
			return float64(weights[at]) * values.exact(0, int(index[at])*width+j)
		})
		total := 0.0
		for _, w := range weights[lo:hi] {
			total += float64(w)
		}
		total = max(total, 1e-9) // of no values, whose mean is zero
		return value / total, scale / total
	})
})
