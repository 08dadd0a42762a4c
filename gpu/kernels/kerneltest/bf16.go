package kerneltest

import (
	"math"

	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// halfs is a matrix of bfloat16, of which two make a number of the array.
type halfs struct {
	*array
	kernels.Half
}

// half makes a matrix of n rows of an even number of columns.
func (r *rig) half(n, columns int, value func() float32) halfs {
	return halfsOf(r.matrix(n, columns/2, func() float32 {
		x := value()
		return math.Float32frombits(bits(x) | bits(value())<<16)
	}))
}

// unwritten makes a matrix of results.
func (r *rig) unwritten(n, columns int) halfs {
	return halfsOf(r.matrix(n, columns/2, r.garbage))
}

func halfsOf(a *array) halfs {
	a.bytes = 2
	return halfs{a, kernels.Half{Memory: a.Memory, Offset: a.Offset, Columns: 2 * a.Columns, Stride: 2 * a.Stride}}
}

// bits are those of x in bfloat16.
func bits(x float32) uint32 { return math.Float32bits(kernel.RoundBF16(x)) >> 16 }

// value is an element as float32.
func (h halfs) value(i, j int) float32 {
	word := math.Float32bits(h.array.value(i, j/2))
	return math.Float32frombits(word >> (j % 2 * 16) << 16)
}

// rounded fails the test unless the elements of h have become what want says, after rounding, where
// all NaN are equal.
func (r *rig) rounded(what string, h halfs, want func(i, j int) float32) {
	r.Helper()
	same := func(got uint32, x float32) bool {
		return got == bits(x) || x != x && got&0x7fff > 0x7f80
	}
	r.check(what, h.array, func(got float32, i, j int) (string, bool) {
		word := math.Float32bits(got)
		return "its halves", same(word&0xffff, want(i, 2*j)) && same(word>>16, want(i, 2*j+1))
	})
}

var _ = add("bf16", func(r *rig) {
	for range 8 {
		n, c := r.rowCount(), 2*(1+r.IntN(2))*r.columnCount()
		x := r.matrix(n, c, func() float32 {
			if r.IntN(16) == 0 {
				return math.Float32frombits(0x7f800001 | r.Uint32()&0x80000000) // NaN that rounding makes an infinity
			}
			return r.wild()
		})
		y := r.unwritten(n, c+2*r.IntN(3))
		r.must(r.k.ToBF16(r.s, y.Half, x.Matrix, n))
		r.rounded("ToBF16", y, func(i, j int) float32 {
			if j >= c {
				return 0
			}
			return x.value(i, j)
		})
	}
})

var _ = add("epilogue in bf16", func(r *rig) {
	n, c := r.rowCount(), 2*r.columnCount()
	x, y := r.matrix(n, c, r.wild), r.unwritten(n, c)
	a, bias, want := r.epilogue(x)
	r.must(r.k.EpilogueBF16(r.s, a, y.Half, x.Matrix, bias, n))
	r.rounded("EpilogueBF16", y, want)
})

var _ = add("derive in bf16", func(r *rig) {
	n, c, a, value := r.rowCount(), 2*r.columnCount(), r.activation(), r.any()
	work := r.work(r.matrix(n, c, r.plain))
	y, half := r.matrix(n, c, value), r.half(n, c, value)
	try := func(what string, y func(i, j int) float32, derive func(dx kernels.Half) error) {
		dx, sums := r.half(n, c, value), r.vector(c, r.garbage)
		want := func(i, j int) float32 { return gradient(a, y(i, j), dx.value(i, j)) }
		r.must(derive(dx.Half))
		r.rounded(what, dx, want)
		r.must(r.k.FinishSums(r.s, n, kernels.ChunkSums{Sums: sums.Matrix, Work: work}))
		r.equal("the sums of "+what, sums, columnSums(n, want))
	}
	try("DeriveBF16", y.value, func(dx kernels.Half) error { return r.k.DeriveBF16(r.s, a, dx, y.Matrix, n, work) })
	try("DeriveFromBF16", half.value, func(dx kernels.Half) error { return r.k.DeriveFromBF16(r.s, a, dx, half.Half, n, work) })
})

var _ = add("derive outer", func(r *rig) {
	n, c, a, value := r.rowCount(), (1+r.IntN(2))*r.columnCount(), r.activation(), r.any()
	y, g, w := r.matrix(n, c, value), r.matrix(n, 1, value), r.matrix(c, 1, value)
	work, sums := r.work(y), r.vector(c, r.garbage)
	want := func(i, j int) float32 { return gradient(a, y.value(i, j), g.value(i, 0)*w.value(j, 0)) }
	dx := r.matrix(n, c, r.garbage)
	r.must(r.k.DeriveOuter(r.s, a, dx.Matrix, g.Matrix, w.Matrix, y.Matrix, n, work))
	r.equal("DeriveOuter", dx, want)
	r.must(r.k.FinishSums(r.s, n, kernels.ChunkSums{Sums: sums.Matrix, Work: work}))
	r.equal("the sums of DeriveOuter", sums, columnSums(n, want))
	if c%2 != 0 {
		return
	}
	rounded := r.unwritten(n, c)
	r.must(r.k.DeriveOuterBF16(r.s, a, rounded.Half, g.Matrix, w.Matrix, y.Matrix, n, work))
	r.rounded("DeriveOuterBF16", rounded, want)
	r.must(r.k.FinishSums(r.s, n, kernels.ChunkSums{Sums: sums.Matrix, Work: work}))
	r.equal("the sums of DeriveOuterBF16", sums, columnSums(n, want))
})
