package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// newEpilogue draws an epilogue for the (m, n) result of a product.
func newEpilogue(r *rand.Rand, m, n int) *Epilogue {
	e := new(Epilogue)
	if r.IntN(4) > 0 {
		e.Bias = anything(r, make([]float32, n))
	}
	e.Activation = Activation(r.IntN(4))
	e.Derivative = Activation(r.IntN(4))
	e.OutputStride = n + r.IntN(5)
	e.Output = anything(r, make([]float32, max(0, (m-1)*e.OutputStride+n)))
	return e
}

// separately applies e to the result of p, one step after the other.
func (e *Epilogue) separately(p *problem, c []float32) []float32 {
	c = append([]float32(nil), c...)
	activations := [...]func(float32) float32{
		ActivationNone: func(x float32) float32 { return x },
		ActivationRelu: func(x float32) float32 {
			if x < 0 {
				return 0
			}
			return x
		},
		ActivationSigmoid: Sigmoid,
		ActivationTanh:    Tanh,
	}
	for i := range p.m {
		row, out := c[i*p.ldc:][:p.n], e.Output[i*e.OutputStride:][:p.n]
		for j, x := range row {
			if e.Bias != nil {
				x += e.Bias[j]
			}
			row[j] = activations[e.Activation](x)
		}
		switch e.Derivative {
		case ActivationRelu:
			ReluBackward(row, row, out)
		case ActivationSigmoid:
			SigmoidBackward(row, row, out)
		case ActivationTanh:
			TanhBackward(row, row, out)
		}
	}
	return c
}

// TestProductsInEveryForm: the product with an epilogue, on several threads, by a Scratch
// and with a packed B, is at every level the product followed by the single steps.
func TestProductsInEveryForm(t *testing.T) {
	r := seeded(t, 7)
	sizes := []int{0, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 27, 31, 32, 33, 47, 64, 65, 260}
	size := func() int { return sizes[r.IntN(len(sizes))] }
	defer SetThreads(0)
	var scratch Scratch
	var packed PackedB
	for i := range rounds(300) {
		m, n, k := size(), size(), size()
		if i%40 == 0 {
			k = 390 + r.IntN(500) // several blocks
		}
		fill := ordinary
		if r.IntN(4) == 0 {
			fill = anything
		}
		p := newProblem(r, r.IntN(4), m, n, k, 5, fill)
		e := newEpilogue(r, m, n)
		var want []float32
		atLevel(t, "portable", func() { want = e.separately(p, p.define()) })
		for _, level := range Levels() {
			atLevel(t, level, func() {
				for threads := 1; threads <= 3; threads++ {
					SetThreads(threads)
					got := append([]float32(nil), p.c...)
					GemmEpilogue(p.transA, p.transB, m, n, k, p.a, p.lda, p.b, p.ldb, p.accumulate, e, got, p.ldc)
					wantSame(t, fmt.Sprintf("%s, %d threads, %v, %+v", level, threads, p, *e), want, got)
				}
				got := append([]float32(nil), p.c...)
				scratch.Gemm(p.transA, p.transB, m, n, k, p.a, p.lda, p.b, p.ldb, p.accumulate, e, got, p.ldc)
				wantSame(t, fmt.Sprintf("%s, scratch, %v, %+v", level, p, *e), want, got)

				packed.Pack(p.transB, k, n, p.b, p.ldb)
				got = append(got[:0], p.c...)
				// In tiles of rows, as an executor computes them.
				for row, rows := 0, 0; row < m; row += rows {
					rows = min(1+r.IntN(100), m-row)
					a := p.a
					if p.transA {
						a = a[min(row, len(a)):]
					} else {
						a = a[min(row*p.lda, len(a)):]
					}
					part := *e
					part.Output = e.Output[row*e.OutputStride:]
					scratch.GemmPacked(p.transA, rows, a, p.lda, &packed, p.accumulate, &part, got[row*p.ldc:], p.ldc)
				}
				wantSame(t, fmt.Sprintf("%s, packed, %v, %+v", level, p, *e), want, got)
			})
		}
	}
}

func TestScratchMakesNoGarbage(t *testing.T) {
	if raceEnabled || Level() == "portable" {
		t.Skip("the race detector and the portable product make garbage of their own")
	}
	r := seeded(t, 8)
	p := newProblem(r, 0, 300, 100, 900, 0, ordinary)
	e := newEpilogue(r, p.m, p.n)
	var scratch Scratch
	var packed PackedB
	defer SetThreads(0)
	SetThreads(3)
	run := func() {
		packed.Pack(false, p.k, p.n, p.b, p.ldb)
		scratch.GemmPacked(false, p.m, p.a, p.lda, &packed, false, e, p.c, p.ldc)
		scratch.Gemm(false, false, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, false, e, p.c, p.ldc)
	}
	run()
	if n := testing.AllocsPerRun(20, run); n > 0 {
		t.Errorf("%g allocations a run", n)
	}
}

func TestEpilogueRefusesWrongSizes(t *testing.T) {
	x := make([]float32, 6)
	for name, e := range map[string]*Epilogue{
		"short bias":    {Bias: x[:1]},
		"short output":  {Derivative: ActivationRelu, Output: x[:3], OutputStride: 2},
		"narrow output": {Derivative: ActivationRelu, Output: x, OutputStride: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			new(Scratch).Gemm(false, false, 2, 2, 1, x, 1, x, 2, false, e, x, 2)
		}()
	}
}
