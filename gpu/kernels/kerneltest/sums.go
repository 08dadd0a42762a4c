package kerneltest

import (
	"math"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

var _ = add("rows", func(r *rig) {
	n, c, value := r.rowCount(), r.columnCount(), r.any()
	x, y := r.matrix(n, c, value), r.matrix(n, c, value)
	sums, dots := r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage)
	r.must(r.k.RowSum(r.s, sums.Matrix, x.Matrix, n))
	r.equal("RowSum", sums, func(i, _ int) float32 { return kernel.Sum(x.row(i)) })
	r.must(r.k.RowDot(r.s, dots.Matrix, x.Matrix, y.Matrix, n))
	r.equal("RowDot", dots, func(i, _ int) float32 { return kernel.Dot(x.row(i), y.row(i)) })
})

var _ = add("fm", func(r *rig) {
	n, f, dim := r.rowCount(), 1+r.IntN(8), 1+r.IntN(40)
	x, y := r.matrix(n, f*dim, r.plain), r.matrix(n, 1, r.garbage)
	r.must(r.k.FM(r.s, y.Matrix, x.Matrix, dim, n))
	r.near("FM", y, func(i, _ int) (want, scale float64) {
		for v := range f {
			for w := range v {
				for d := range dim {
					p := float64(x.value(i, v*dim+d)) * float64(x.value(i, w*dim+d))
					want, scale = want+p, scale+math.Abs(p)
				}
			}
		}
		// The squares of the vectors are added and taken away.
		for _, x := range x.row(i) {
			scale += float64(x * x)
		}
		return want, scale
	})
	dx, dy := r.matrix(n, f*dim, r.garbage), r.matrix(n, 1, r.plain)
	r.must(r.k.FMGrad(r.s, dx.Matrix, x.Matrix, dy.Matrix, dim, n))
	r.equal("FMGrad", dx, func(i, j int) float32 {
		var sum float32
		for v := range f {
			sum += x.value(i, v*dim+j%dim)
		}
		return dy.value(i, 0) * (sum - x.value(i, j))
	})
})

// interaction tries f vectors, at least two, of dim numbers.
func interaction(r *rig, n, f, dim int) {
	x, y := r.matrix(n, f*dim, r.any()), r.matrix(n, pairs(f), r.garbage)
	var s kernel.Scratch
	r.must(r.k.Interact(r.s, y.Matrix, x.Matrix, dim, n))
	want := byRow(n, pairs(f), func(i int, out []float32) { s.Interact(1, f, dim, x.row(i), f*dim, out, pairs(f)) })
	r.equal("Interact", y, want)
	half := r.unwritten(n, (pairs(f)+1)/2*2+2*r.IntN(4))
	r.must(r.k.InteractBF16(r.s, half.Half, x.Matrix, dim, n))
	r.rounded("InteractBF16", half, func(i, j int) float32 {
		if j >= pairs(f) {
			return 0
		}
		return want(i, j)
	})
	dx, dy := r.matrix(n, f*dim, r.garbage), r.matrix(n, pairs(f), r.any())
	r.must(r.k.InteractGrad(r.s, dx.Matrix, x.Matrix, dy.Matrix, dim, n))
	grads := byRow(n, f*dim, func(i int, out []float32) {
		s.InteractBackward(1, f, dim, x.row(i), f*dim, dy.row(i), pairs(f), out, f*dim)
	})
	r.equal("InteractGrad", dx, grads)
	for _, rounds := range []bool{false, true} {
		dx, others, dz := r.matrix(n, (f-1)*dim, r.garbage), r.matrix(n, dim, r.any()), r.matrix(n, dim, r.garbage)
		half := r.unwritten(n, (dim+1)/2*2+2*r.IntN(4))
		first := kernels.FirstVector{Activation: r.activation(), Others: others.Matrix, Gradient: dz.Matrix}
		if rounds {
			first.Half = half.Half
		}
		want := func(i, d int) float32 {
			if d >= dim {
				return 0
			}
			return gradient(first.Activation, x.value(i, d), others.value(i, d)+grads(i, d))
		}
		r.must(r.k.InteractGradFirst(r.s, dx.Matrix, first, x.Matrix, dy.Matrix, dim, n))
		r.equal("InteractGradFirst", dx, func(i, j int) float32 { return grads(i, j+dim) })
		r.equal("InteractGradFirst, the first", dz, want)
		if rounds {
			r.rounded("InteractGradFirst, the first", half, want)
		}
	}
}

// byRow returns the elements of a matrix that f computes row by row.
func byRow(n, columns int, f func(i int, out []float32)) func(i, j int) float32 {
	all := make([]float32, n*columns)
	for i := range n {
		f(i, all[i*columns:][:columns])
	}
	return func(i, j int) float32 { return all[i*columns+j] }
}

var _ = add("interact", func(r *rig) { interaction(r, min(r.rowCount(), 40), 2+r.IntN(8), 1+r.IntN(20)) })

// As many vectors as models have, some of them aligned.
var _ = add("interact many", func(r *rig) {
	interaction(r, 1+r.IntN(10), 18+r.IntN(40), []int{4, 8, 16, 16, 18, 32}[r.IntN(6)])
})

// Vectors whose pairs take more shared memory than they, and perhaps more than there is.
var _ = add("interact pairs", func(r *rig) { interaction(r, 1+r.IntN(3), 90+r.IntN(70), 1+r.IntN(12)) })

// So few numbers for each thread of InteractGrad that it copies gradients in several turns.
var _ = add("interact short", func(r *rig) { interaction(r, 1+r.IntN(6), 22+r.IntN(7), 1+r.IntN(8)) })

// Few vectors of more numbers than a warp has threads, and perhaps than a block.
var _ = add("interact few", func(r *rig) { interaction(r, 1+r.IntN(6), 2+r.IntN(28), 33+r.IntN(120)) })

// Vectors that find no room in shared memory, but perhaps without their gradients.
var _ = add("interact far", func(r *rig) { interaction(r, 1+r.IntN(2), 85+r.IntN(20), 120+r.IntN(30)) })

// total returns Σ term(i) and Σ |term(i)| over the rows of x.
func total(n int, term func(i int) float64) (sum, scale float64) {
	for i := range n {
		sum, scale = sum+term(i), scale+math.Abs(term(i))
	}
	return sum, scale
}

// columnSums are the sums of n rows of each column, in the order of ColumnSum.
func columnSums(n int, term func(i, j int) float32) func(_, j int) float32 {
	const chunk, lanes = 256, 8
	sum := func(lo, hi int, term func(i int) float64) float64 {
		var l [lanes]float64
		for i := lo; i < hi; i++ {
			l[(i-lo)%lanes] += term(i)
		}
		return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
	}
	return func(_, j int) float32 {
		return float32(sum(0, (n+chunk-1)/chunk, func(c int) float64 {
			return sum(c*chunk, min((c+1)*chunk, n), func(i int) float64 { return float64(term(i, j)) })
		}))
	}
}

var _ = add("column sum", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	x, sums := r.matrix(n, c, r.plain), r.vector(c, r.garbage)
	r.must(r.k.ColumnSum(r.s, sums.Matrix, x.Matrix, n, r.work(x)))
	r.near("ColumnSum", sums, func(_, j int) (float64, float64) {
		return total(n, func(i int) float64 { return float64(x.value(i, j)) })
	})
})

var _ = add("column sum of many rows", func(r *rig) {
	n, c := 256*9+r.IntN(3000), 1+r.IntN(4)
	x, sums := r.matrix(n, c, r.plain), r.vector(c, r.garbage)
	r.must(r.k.ColumnSum(r.s, sums.Matrix, x.Matrix, n, r.work(x)))
	r.near("ColumnSum", sums, func(_, j int) (float64, float64) {
		return total(n, func(i int) float64 { return float64(x.value(i, j)) })
	})
})

var _ = add("batch statistics", func(r *rig) {
	// The mini-batch lies on two devices, whose sums are added up as by an all-reduce.
	n, m, c := 1+r.rowCount(), r.rowCount(), r.columnCount()
	count, shift := n+m, 100*r.plain()
	value := func() float32 { return r.plain() + shift }
	a, b := r.matrix(n, c, value), r.matrix(m, c, value)
	sums, squares, other := r.vector(c, r.garbage), r.vector(c, r.garbage), r.vector(c, r.garbage)
	r.must(r.k.ColumnSum(r.s, sums.Matrix, a.Matrix, n, r.work(a)))
	r.must(r.k.ColumnSum(r.s, other.Matrix, b.Matrix, m, r.work(b)))
	r.must(r.k.Add(r.s, sums.Matrix, other.Matrix, 1))
	r.must(r.k.NormSquares(r.s, squares.Matrix, a.Matrix, sums.Matrix, n, count, r.work(a)))
	r.must(r.k.NormSquares(r.s, other.Matrix, b.Matrix, sums.Matrix, m, count, r.work(b)))
	r.must(r.k.Add(r.s, squares.Matrix, other.Matrix, 1))
	stats := r.matrix(2, c, r.garbage)
	r.must(r.k.NormStatistics(r.s, stats.Matrix, sums.Matrix, squares.Matrix, count))
	element := func(i, j int) float64 {
		if i < n {
			return float64(a.value(i, j))
		}
		return float64(b.value(i-n, j))
	}
	r.near("NormStatistics", stats, func(i, j int) (float64, float64) {
		sum, scale := total(count, func(i int) float64 { return element(i, j) })
		mean := sum / float64(count)
		if i == 0 {
			return mean, scale / float64(count)
		}
		square, scale := total(count, func(i int) float64 { return (element(i, j) - mean) * (element(i, j) - mean) })
		return square / float64(count), scale/float64(count) + 1e-4
	})
})

// inverse is 1/√(variance + ε) as ops has it.
func inverse(variance float32) float32 { return float32(1 / math.Sqrt(float64(variance)+1e-5)) }

// statistics makes means and variances of c columns.
func statistics(r *rig, c int) *array {
	k := 0
	return r.matrix(2, c, func() float32 {
		if k++; k <= c {
			return r.plain()
		}
		return r.Float32() * r.Float32()
	})
}

var _ = add("normalize", func(r *rig) {
	n, c, value := r.rowCount(), r.columnCount(), r.any()
	x, y, stats := r.matrix(n, c, value), r.matrix(n, c, r.garbage), statistics(r, c)
	gamma, beta := r.vector(c, r.plain), r.vector(c, r.plain)
	normalized := func(i, j int) float32 {
		return float32((x.value(i, j) - stats.value(0, j)) * inverse(stats.value(1, j)))
	}
	r.must(r.k.Normalize(r.s, y.Matrix, x.Matrix, gamma.Matrix, beta.Matrix, stats.Matrix, n))
	r.equal("Normalize", y, func(i, j int) float32 {
		return float32(gamma.value(0, j)*normalized(i, j)) + beta.value(0, j)
	})
	dx, dy, dgamma, dbeta := r.matrix(n, c, r.garbage), r.matrix(n, c, value), r.vector(c, r.plain), r.vector(c, r.plain)
	count := n + r.IntN(100) + 1
	r.must(r.k.NormInput(r.s, dx.Matrix, x.Matrix, gamma.Matrix, stats.Matrix, dgamma.Matrix, dbeta.Matrix, dy.Matrix, n, count))
	r.equal("NormInput", dx, func(i, j int) float32 {
		mean, slope := dbeta.value(0, j)/float32(count), dgamma.value(0, j)/float32(count)
		return gamma.value(0, j) * inverse(stats.value(1, j)) * (dy.value(i, j) - mean - float32(normalized(i, j)*slope))
	})
})

var _ = add("gradient of gamma", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	x, dy, stats, dgamma := r.matrix(n, c, r.plain), r.matrix(n, c, r.plain), statistics(r, c), r.vector(c, r.garbage)
	r.must(r.k.NormGamma(r.s, dgamma.Matrix, x.Matrix, stats.Matrix, dy.Matrix, n, r.work(x)))
	r.near("NormGamma", dgamma, func(_, j int) (float64, float64) {
		scale := 1 / math.Sqrt(float64(stats.value(1, j))+1e-5)
		return total(n, func(i int) float64 {
			return float64(dy.value(i, j)) * (float64(x.value(i, j)) - float64(stats.value(0, j))) * scale
		})
	})
})

var _ = add("running statistics", func(r *rig) {
	c, count, set := r.columnCount(), 1+r.IntN(3)*r.IntN(100), uint32(r.IntN(2))
	running, stats, flag := statistics(r, c), statistics(r, c), r.words(set)
	r.must(r.k.UpdateRunning(r.s, running.Matrix, stats.Matrix, count, flag.region()))
	r.equal("UpdateRunning", running, func(i, j int) float32 {
		was, x := running.value(i, j), stats.value(i, j)
		if i == 1 {
			if count == 1 {
				return was
			}
			x *= float32(float64(count) / float64(count-1))
		}
		if set != 0 {
			return was
		}
		return was + float32(0.1*(x-was))
	})
})

var _ = add("column dots", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	x, g, sums := r.matrix(n, c, r.plain), r.matrix(n, 1, r.plain), r.vector(c, r.garbage)
	work := r.work(x)
	r.must(r.k.DotChunks(r.s, x.Matrix, g.Matrix, n, work))
	r.must(r.k.FinishSums(r.s, n, kernels.ChunkSums{Sums: sums.Matrix, Work: work}))
	r.near("DotChunks", sums, func(_, j int) (float64, float64) {
		return total(n, func(i int) float64 { return float64(x.value(i, j)) * float64(g.value(i, 0)) })
	})
})

// Memory that is too small for the sums of chunks is refused.
var _ = add("no work memory", func(r *rig) {
	x, sums := r.matrix(1+r.IntN(600), r.columnCount(), r.plain), r.vector(70, r.plain)
	to := kernels.Matrix{Memory: sums.Memory, Offset: sums.Offset, Columns: x.Columns, Stride: x.Columns}
	work := r.work(x)
	for _, bad := range []gpu.Region{gpu.Part(work.Memory, work.Offset, work.Width-4), gpu.Part(work.Memory, work.Offset+4, work.Width)} {
		if r.k.ColumnSum(r.s, to, x.Matrix, x.rows, bad) == nil {
			r.Errorf("%s: sums of %v in %v", r.where, x, bad)
		}
	}
})
