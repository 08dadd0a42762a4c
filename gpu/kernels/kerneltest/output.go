package kerneltest

import (
	"math"

	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// outputTrial is a layer with one output, all of whose operands are there.
type outputTrial struct {
	n, c                                 int
	x, w, bias, labels, weights, z, t, d *array
	kernels.Output
}

func newOutput(r *rig, value func() float32) *outputTrial {
	n, c := r.rowCount(), []int{1, 2, 4, 16}[r.IntN(4)]*r.columnCount() // some have no room in shared memory
	o := &outputTrial{n: n, c: c, x: r.matrix(n, c, value), w: r.matrix(c, 1, value), bias: r.vector(1, value), labels: r.matrix(n, 1, func() float32 { return float32(r.IntN(2)) })}
	o.weights, o.z, o.t, o.d = r.matrix(n, 1, r.plain), r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage), r.matrix(n, 1, r.garbage)
	o.Output = kernels.Output{
		X: o.x.Matrix, W: o.w.Matrix, Bias: o.bias.Matrix, Activation: r.activation(), Labels: o.labels.Matrix, Weights: o.weights.Matrix, Total: 1 + r.IntN(10_000),
		Check: r.words(0).region(), Logits: o.z.Matrix, Terms: o.t.Matrix, Gradient: o.d.Matrix,
	}
	return o
}

var _ = add("output", func(r *rig) {
	o := newOutput(r, r.any())
	bias, weight := o.bias.value(0, 0), func(i int) float32 { return o.weights.value(i, 0) }
	if r.IntN(2) == 0 {
		o.Bias, bias = kernels.Matrix{}, float32(math.Copysign(0, -1)) // which changes nothing
	}
	if r.IntN(2) == 0 {
		o.Weights, weight = kernels.Matrix{}, func(int) float32 { return 1 }
	}
	column := make([]float32, o.c)
	for j := range column {
		column[j] = o.w.value(j, 0)
	}
	check := []float32{0, 0, 0, float32(math.NaN())}[r.IntN(4)]
	o.Check = r.words(math.Float32bits(check)).region()
	logit := func(i, _ int) float32 { return kernel.Dot(o.x.row(i), column) + bias }
	slope := func(i, _ int) float32 {
		return (kernel.Sigmoid(logit(i, 0)) - o.labels.value(i, 0)) * weight(i) * (1 / float32(o.Total))
	}
	down := func(i, j int) float32 { return gradient(o.Activation, o.x.value(i, j), slope(i, 0)*column[j]) }
	written := func(what string) {
		r.Helper()
		r.equal(what+", logits", o.z, logit)
		r.equal(what+", terms", o.t, func(i, _ int) float32 {
			return float32((kernel.Softplus(logit(i, 0))-float32(o.labels.value(i, 0)*logit(i, 0)))*weight(i)) + check
		})
		r.equal(what+", their gradient", o.d, slope)
	}
	dx := r.matrix(o.n, o.c, r.garbage)
	r.must(r.k.Output(r.s, &o.Output, dx.Matrix, o.n))
	written("Output")
	r.equal("Output", dx, down)
	if o.c%2 == 0 {
		half := r.unwritten(o.n, o.c)
		r.must(r.k.OutputBF16(r.s, &o.Output, half.Half, o.n))
		written("OutputBF16")
		r.rounded("OutputBF16", half, down)
	}
	dots, sums, weights, biases := r.work(dx), r.work(dx), r.vector(o.c, r.garbage), r.vector(o.c, r.garbage)
	r.must(r.k.OutputSums(r.s, &o.Output, o.n, dots, sums))
	r.must(r.k.FinishSums(r.s, o.n, kernels.ChunkSums{Sums: weights.Matrix, Work: dots}, kernels.ChunkSums{Sums: biases.Matrix, Work: sums}))
	r.equal("the sums of Output", biases, columnSums(o.n, down))
	alone, work := r.vector(o.c, r.garbage), r.work(dx)
	r.must(r.k.DotChunks(r.s, o.X, o.Gradient, o.n, work))
	r.must(r.k.FinishSums(r.s, o.n, kernels.ChunkSums{Sums: alone.Matrix, Work: work}))
	got := rowOf(alone, r.download(alone), 0)
	r.equal("the dots of Output", weights, func(_, j int) float32 { return got[j] })
})

var _ = add("output in float64", func(r *rig) {
	o := newOutput(r, r.plain)
	dx := r.matrix(o.n, o.c, r.garbage)
	r.must(r.k.Output(r.s, &o.Output, dx.Matrix, o.n))
	logit := func(i, _ int) (float64, float64) {
		value, scale := dots(o.c, func(k int) float64 { return o.x.exact(i, k) * o.w.exact(k, 0) })
		return value + o.bias.exact(0, 0), scale + math.Abs(o.bias.exact(0, 0))
	}
	slope := func(i, _ int) (float64, float64) {
		z, scale := logit(i, 0)
		by := o.weights.exact(i, 0) / float64(o.Total)
		return (apply64(kernels.Sigmoid, z) - o.labels.exact(i, 0)) * by, (1 + scale) * math.Abs(by)
	}
	r.near("Output, logits", o.z, logit)
	r.near("Output, terms", o.t, func(i, _ int) (float64, float64) {
		z, scale := logit(i, 0)
		value := max(z, 0) + math.Log1p(math.Exp(-math.Abs(z))) - o.labels.exact(i, 0)*z
		return value * o.weights.exact(i, 0), (1 + 2*scale) * math.Abs(o.weights.exact(i, 0))
	})
	r.near("Output, their gradient", o.d, slope)
	r.near("Output", dx, func(i, j int) (float64, float64) {
		d, scale := slope(i, 0)
		by := o.w.exact(j, 0) * slope64(o.Activation, o.x.exact(i, j))
		return d * by, scale * (math.Abs(by) + 5*math.Abs(o.w.exact(j, 0)))
	})
})
