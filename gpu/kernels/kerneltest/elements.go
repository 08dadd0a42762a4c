package kerneltest

import (
	"math"

	"aibox/gpu/kernels"
	"aibox/internal/kernel"
	"aibox/internal/splitmix"
)

// apply and gradient are what ops.Activation does.
func apply(a kernels.Activation, x float32) float32 {
	v := []float32{x}
	switch a {
	case kernels.ReLU:
		kernel.Relu(v, v)
	case kernels.LeakyReLU:
		if x < 0 {
			v[0] = x * 0.01
		}
	case kernels.Tanh:
		kernel.TanhSlice(v, v)
	case kernels.Sigmoid:
		kernel.SigmoidSlice(v, v)
	}
	return v[0]
}

func gradient(a kernels.Activation, y, dy float32) float32 {
	dx := []float32{dy}
	switch a {
	case kernels.ReLU:
		kernel.ReluBackward(dx, dx, []float32{y})
	case kernels.LeakyReLU:
		if !(y > 0) {
			dx[0] = dy * 0.01
		}
	case kernels.Tanh:
		kernel.TanhBackward(dx, dx, []float32{y})
	case kernels.Sigmoid:
		kernel.SigmoidBackward(dx, dx, []float32{y})
	}
	return dx[0]
}

func (r *rig) activation() kernels.Activation {
	if r.first {
		return kernels.Tanh
	}
	return kernels.Activation(r.IntN(5))
}

var _ = add("activate", func(r *rig) {
	n, c, a := r.rowCount(), r.columnCount(), r.activation()
	x, y := r.matrix(n, c, r.wild), r.matrix(n, c, r.garbage)
	r.must(r.k.Activate(r.s, a, y.Matrix, x.Matrix, n))
	r.equal("Activate", y, func(i, j int) float32 { return apply(a, x.value(i, j)) })
})

// Many arguments, close to one another where the functions bend.
var _ = add("functions", func(r *rig) {
	const n = 1500
	k, from, step := 0, 20*r.plain(), r.Float32()/100
	value := func() float32 {
		k++
		return from + float32(float32(k)*step)
	}
	x, y, labels := r.matrix(n, 1, value), r.matrix(n, 1, r.garbage), r.matrix(n, 1, func() float32 { return 0 })
	for _, a := range []kernels.Activation{kernels.Tanh, kernels.Sigmoid} {
		r.must(r.k.Activate(r.s, a, y.Matrix, x.Matrix, n))
		r.equal("Activate", y, func(i, j int) float32 { return apply(a, x.value(i, j)) })
	}
	r.must(r.k.Loss(r.s, y.Matrix, x.Matrix, labels.Matrix, kernels.Matrix{}, r.words(0).region(), n))
	r.equal("Loss", y, func(i, _ int) float32 { return kernel.Softplus(x.value(i, 0)) })
})

var _ = add("activate grad", func(r *rig) {
	n, c, a, value := r.rowCount(), r.columnCount(), r.activation(), r.any()
	dx, y, dy := r.matrix(n, c, r.garbage), r.matrix(n, c, value), r.matrix(n, c, value)
	want := func(i, j int) float32 { return gradient(a, y.value(i, j), dy.value(i, j)) }
	r.must(r.k.ActivateGrad(r.s, a, dx.Matrix, y.Matrix, dy.Matrix, n))
	r.equal("ActivateGrad", dx, want)
	work, sums := r.work(dy), r.vector(c, r.garbage)
	r.must(r.k.Derive(r.s, a, dy.Matrix, y.Matrix, n, work))
	r.equal("Derive", dy, want)
	r.must(r.k.FinishSums(r.s, n, kernels.ChunkSums{Sums: sums.Matrix, Work: work}))
	r.equal("the sums of Derive", sums, columnSums(n, want))
})

var _ = add("sums of several", func(r *rig) {
	n := r.rowCount()
	var all []kernels.ChunkSums
	var sums, values []*array
	for range 1 + r.IntN(9) {
		c := r.columnCount()
		x, y, sum := r.matrix(n, c, r.plain), r.matrix(n, c, r.plain), r.vector(c, r.garbage)
		work := r.work(x)
		r.must(r.k.Derive(r.s, kernels.Identity, x.Matrix, y.Matrix, n, work))
		all, sums, values = append(all, kernels.ChunkSums{Sums: sum.Matrix, Work: work}), append(sums, sum), append(values, x)
	}
	r.must(r.k.FinishSums(r.s, n, all...))
	for i, sum := range sums {
		r.equal("FinishSums", sum, columnSums(n, values[i].value))
	}
})

var _ = add("epilogue", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	y := r.matrix(n, c, r.wild)
	a, bias, want := r.epilogue(y)
	r.must(r.k.Epilogue(r.s, a, y.Matrix, bias, n))
	r.equal("Epilogue", y, want)
})

// epilogue draws what is done with x, an activation and perhaps a bias, and what that makes of its elements.
func (r *rig) epilogue(x *array) (a kernels.Activation, operand kernels.Matrix, want func(i, j int) float32) {
	r.Helper()
	a = r.activation()
	bias, biased := r.vector(x.Columns, r.plain), r.IntN(2) == 0
	if biased {
		operand = bias.Matrix
		operand.Stride = r.IntN(2) * operand.Stride // which means nothing
	}
	return a, operand, func(i, j int) float32 {
		v := x.value(i, j)
		if biased {
			v += bias.value(0, j)
		}
		return apply(a, v)
	}
}

var _ = add("columns", func(r *rig) {
	n, groups, period := r.rowCount(), 1+r.IntN(5), 1+r.IntN(9)
	lo := r.IntN(period)
	hi := lo + 1 + r.IntN(period-lo)
	width := hi - lo
	x, y := r.matrix(n, groups*period, r.wild), r.matrix(n, groups*width, r.garbage)
	r.must(r.k.Columns(r.s, y.Matrix, x.Matrix, period, lo, hi, n))
	r.equal("Columns", y, func(i, j int) float32 { return x.value(i, j/width*period+lo+j%width) })

	dx, dy := r.matrix(n, groups*period, r.garbage), r.matrix(n, groups*width, r.wild)
	r.must(r.k.Spread(r.s, dx.Matrix, dy.Matrix, period, lo, hi, n))
	want := make([]float32, n*groups*period)
	for i := range n {
		for j := range groups * width {
			want[i*groups*period+j/width*period+lo+j%width] = dy.value(i, j)
		}
	}
	r.equal("Spread", dx, func(i, j int) float32 { return want[i*groups*period+j] })
})

var _ = add("copies", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	x, y := r.matrix(n, c, r.wild), r.matrix(n, c, r.garbage)
	r.must(r.k.Copy(r.s, y.Matrix, x.Matrix, n))
	r.equal("Copy", y, x.value)
	column, repeated := r.matrix(n, 1, r.wild), r.matrix(n, c, r.garbage)
	r.must(r.k.Repeat(r.s, repeated.Matrix, column.Matrix, n))
	r.equal("Repeat", repeated, func(i, _ int) float32 { return column.value(i, 0) })
	b, biases := r.vector(1+r.IntN(3), r.wild), r.matrix(n, 1, r.garbage)
	zeros := r.matrix(n, c, r.garbage)
	r.must(r.k.Clear(r.s, zeros.Matrix, n))
	r.equal("Clear", zeros, func(int, int) float32 { return 0 })
	r.must(r.k.Bias(r.s, biases.Matrix, b.Matrix, n))
	r.equal("Bias", biases, func(int, int) float32 { return b.value(0, 0) })
})

var _ = add("sum", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	var terms []*array
	var operands []kernels.Matrix
	for range 5 {
		x, y := r.matrix(n, c, r.any()), r.matrix(n, c, r.garbage)
		terms, operands = append(terms, x), append(operands, x.Matrix)
		r.must(r.k.Sum(r.s, y.Matrix, operands, n))
		r.equal("Sum", y, func(i, j int) float32 {
			sum := terms[0].value(i, j)
			for _, x := range terms[1:] {
				sum += x.value(i, j)
			}
			return sum
		})
	}
})

var _ = add("multiply", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	for _, columns := range []int{1, c} {
		z, x, y := r.matrix(n, c, r.garbage), r.matrix(n, c, r.wild), r.matrix(n, columns, r.wild)
		r.must(r.k.Multiply(r.s, z.Matrix, x.Matrix, y.Matrix, n))
		r.equal("Multiply", z, func(i, j int) float32 { return x.value(i, j) * y.value(i, min(j, columns-1)) })
	}
})

var _ = add("cross", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	value := r.any()
	for _, columns := range []int{1, c} {
		y, x0, xl := r.matrix(n, c, r.garbage), r.matrix(n, c, value), r.matrix(n, c, value)
		z, bias := r.matrix(n, columns, value), r.vector(c, value)
		var operand kernels.Matrix
		if columns < c && r.IntN(2) == 0 {
			operand = bias.Matrix
		}
		r.must(r.k.Cross(r.s, y.Matrix, x0.Matrix, z.Matrix, xl.Matrix, operand, n))
		r.equal("Cross", y, func(i, j int) float32 {
			v := float32(x0.value(i, j) * z.value(i, min(j, columns-1)))
			if operand.Memory != nil {
				v += bias.value(0, j)
			}
			return v + xl.value(i, j)
		})
	}
})

var _ = add("scale vectors", func(r *rig) {
	n, p, dim := r.rowCount(), 1+r.IntN(6), 1+r.IntN(9)
	y, x, v := r.matrix(n, p*dim, r.garbage), r.matrix(n, p, r.any()), r.vector(p*dim, r.any())
	r.must(r.k.ScaleVectors(r.s, y.Matrix, x.Matrix, v.Matrix, dim, n))
	r.equal("ScaleVectors", y, func(i, j int) float32 { return x.value(i, j/dim) * v.value(0, j) })
	terms, dy := r.matrix(n, p*dim, r.garbage), r.matrix(n, p*dim, r.any())
	r.must(r.k.ScaleVectorsGrad(r.s, terms.Matrix, x.Matrix, dy.Matrix, dim, n))
	r.equal("ScaleVectorsGrad", terms, func(i, j int) float32 { return x.value(i, j/dim) * dy.value(i, j) })
})

var _ = add("dropout", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	d := kernels.Dropout{Probability: r.Float64() * 0.99, Seed: r.Uint64(), Layer: r.IntN(5)}
	step := r.Uint64() >> r.IntN(64)
	clock := r.words(uint32(step), uint32(step>>32))
	first := r.IntN(100_000)
	x, y := r.matrix(n, c, r.any()), r.matrix(n, c, r.garbage)
	r.must(r.k.Dropout(r.s, d, y.Matrix, x.Matrix, clock.region(), first, n))
	stream := splitmix.Next(splitmix.Next(splitmix.Next(d.Seed)+uint64(d.Layer)) + step)
	r.equal("Dropout", y, func(i, j int) float32 {
		if splitmix.Next(stream+uint64((first+i)*c+j))>>32 < uint64(d.Probability*(1<<32)) {
			return 0
		}
		return x.value(i, j) * float32(1/(1-d.Probability))
	})
})

var _ = add("loss", func(r *rig) {
	n, total := r.rowCount(), 1+r.IntN(10_000)
	z, y, w := r.matrix(n, 1, r.wild), r.matrix(n, 1, func() float32 { return float32(r.IntN(2)) }), r.matrix(n, 1, r.plain)
	terms, dz := r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage)
	var operand kernels.Matrix
	weight := func(int) float32 { return 1 }
	if r.IntN(2) == 0 {
		operand, weight = w.Matrix, func(i int) float32 { return w.value(i, 0) }
	}
	check := []float32{0, 0, 0, float32(math.NaN())}[r.IntN(4)]
	r.must(r.k.Loss(r.s, terms.Matrix, z.Matrix, y.Matrix, operand, r.words(math.Float32bits(check)).region(), n))
	r.equal("Loss", terms, func(i, _ int) float32 {
		return float32(weight(i)*(kernel.Softplus(z.value(i, 0))-float32(y.value(i, 0)*z.value(i, 0)))) + check
	})
	r.must(r.k.LossGrad(r.s, dz.Matrix, z.Matrix, y.Matrix, operand, total, n))
	r.equal("LossGrad", dz, func(i, _ int) float32 {
		return weight(i) * (kernel.Sigmoid(z.value(i, 0)) - y.value(i, 0)) * (1 / float32(total))
	})
})

var _ = add("finite", func(r *rig) {
	n, c := r.rowCount(), r.columnCount()
	x, before := r.matrix(n, c, r.tame), uint32(r.IntN(2))
	flag := r.words(before)
	r.must(r.k.Finite(r.s, flag.region(), x.Matrix, n))
	is := func(want uint32) {
		r.Helper()
		r.equal("Finite", flag, func(int, int) float32 { return math.Float32frombits(want) })
	}
	is(before)
	if n == 0 {
		return
	}
	// One element of another matrix is not finite; then one follows that is finite.
	at := r.IntN(n * c)
	bad := r.matrix(n, c, func() float32 {
		at--
		if at == -1 {
			return []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(3)]
		}
		return r.tame()
	})
	r.must(r.k.Finite(r.s, flag.region(), bad.Matrix, n))
	r.must(r.k.Finite(r.s, flag.region(), x.Matrix, n))
	is(1)
})
