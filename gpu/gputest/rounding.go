package gputest

import (
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/internal/half"
)

// testRounding tries layers of bfloat16 whose results are bfloat16: a forward product, which makes a mask, and a backward one, which
// finds the derivative by it. Both must be the float32 products, finished and rounded by the host. A device may have rounded the product
// before it added the bias; then sums may be 0 that are not 0 in float32, and a mask may count these as positive.
func testRounding(r *rig, s gpu.Stream, rng *rand.Rand) {
	tried, fused := 0, 0
	for i := range 9 {
		m, n, k := 8*(1+rng.IntN(9)), 8*(1+rng.IntN(20)), 8*(1+rng.IntN(8))
		if i%3 == 1 {
			m, n = 1+rng.IntN(40), 1+rng.IntN(200)
		}
		if i == 8 {
			m = 0
		}
		var bias, mask gpu.Region
		biases := fill(n, func(int) uint16 { return half.BFloat16(float32(rng.NormFloat64()), 0) })
		memory := r.alloc(s.Device(), "bias", 2*n)
		put(r, s, memory, 0, biases)
		if i%4 > 0 {
			bias = gpu.All(memory)
		}
		maskMemory := r.alloc(s.Device(), "mask", max(16, gpu.MaskBytes(m, n)))
		if i%2 == 0 {
			mask = gpu.Part(maskMemory, 0, gpu.MaskBytes(m, n))
		}
		forward := newRounded(r, s, rng, m, n, k)
		forward.p.Epilogue = gpu.Epilogue{Bias: bias, ReLU: i%4 != 1, Round: true}
		if forward.p.Epilogue.ReLU {
			forward.p.Epilogue.Mask = mask
		}
		perhapsZero := make([]bool, m*forward.stride)
		y, ok := forward.run(func(product, _ float32, i, j int) (want, term float32) {
			want = product
			if bias.Memory != nil {
				want += half.FromBFloat16(biases[j])
				if !r.Exact {
					term = product
				}
			}
			perhapsZero[i*forward.stride+j] = isRounded(0, want, term)
			if forward.p.Epilogue.ReLU && want < 0 {
				want = 0
			}
			return want, term
		})
		tried++
		if !ok {
			continue
		}
		fused++
		if forward.p.Epilogue.Mask.Memory == nil {
			continue
		}
		backward := newRounded(r, s, rng, m, n, 16)
		backward.p.Epilogue = gpu.Epilogue{DeriveMask: mask, Round: true}
		backward.run(func(product, got float32, i, j int) (want, term float32) {
			at := i*forward.stride + j
			if y[at]&0x7fff == 0 && !(perhapsZero[at] && got != 0) {
				return 0, 0
			}
			return product, 0
		})
	}
	r.Logf("%d of %d forward products were rounded to bfloat16 in one operation", fused, tried)
	refused := newRounded(r, s, rng, 8, 8, 8)
	for what, change := range map[string]func(p *gpu.Product){
		"sides of float32": func(p *gpu.Product) { p.Precision = gpu.Float32Product },
		"an addition":      func(p *gpu.Product) { p.Accumulate = true },
		"sums": func(p *gpu.Product) {
			p.Epilogue.DeriveMask = gpu.All(r.alloc(s.Device(), "mask", gpu.MaskBytes(8, 8)))
			p.Epilogue.Sums = gpu.All(r.alloc(s.Device(), "sums", 32))
		},
		"a bias of float32": func(p *gpu.Product) { p.Epilogue.Bias = gpu.All(r.alloc(s.Device(), "bias", 32)) },
	} {
		p := refused.p
		p.Epilogue.Round = true
		change(&p)
		_, err := s.Fuses(p)
		r.refuses("a product that rounds, with "+what, err, gpu.InvalidArgument)
	}
}

// rounded is a product of bfloat16 with a result of bfloat16.
type rounded struct {
	*rig
	s      gpu.Stream
	p      gpu.Product
	stride int // of C
}

const gapBF16 = 0x1234 // between the rows of C

func newRounded(r *rig, s gpu.Stream, rng *rand.Rand, m, n, k int) *rounded {
	f := &rounded{rig: r, s: s, stride: (n+7)&^7 + 8*rng.IntN(2)}
	f.p = gpu.Product{Precision: gpu.BF16Product, TransA: rng.IntN(2) == 0, TransB: rng.IntN(2) == 0, M: m, N: n, K: k}
	load := func(rows, columns int, transposed bool) gpu.Matrix {
		if transposed {
			rows, columns = columns, rows
		}
		a := side{rows: rows, columns: columns, stride: (max(1, columns) + 7) &^ 7}
		a = a.random(rng)
		return a.load(r, s, gpu.BF16Product)
	}
	f.p.A, f.p.B = load(m, k, f.p.TransA), load(k, n, f.p.TransB)
	f.p.C = gpu.Matrix{Memory: r.alloc(s.Device(), "c", max(16, 2*m*f.stride)), Stride: f.stride}
	return f
}

// isRounded tells whether got may be x, rounded to bfloat16, after a term of x was rounded, too; 0: none was. Each rounding changes a
// number by no more than half of the last of its 8 bits. The rest is for products that are summed up in another order.
func isRounded(got, x, term float32) bool {
	size := math.Abs(float64(x)) + math.Abs(float64(term))
	return math.Abs(float64(got)-float64(x)) <= size/256+1e-4
}

// run does the product, unless the device cannot, and returns the bits of C. finish is what the epilogue makes of an element before it
// rounds, and a term of that which may have been rounded before; it is told what the device made.
func (f *rounded) run(finish func(product, got float32, i, j int) (want, term float32)) (c []uint16, ok bool) {
	f.Helper()
	fuses := must[bool](f.rig)(f.s.Fuses(f.p))
	if !fuses {
		if f.Fuses {
			f.Fatalf("%v: the device cannot do it", &f.p)
		}
		f.refuses(f.p.String()+" that the device cannot do", f.s.Multiply(f.p), gpu.InvalidArgument)
		return nil, false
	}
	n := f.p.M * f.stride
	plain := f.p
	plain.Epilogue, plain.C.Memory = gpu.Epilogue{}, f.alloc(f.s.Device(), "plain", max(16, 4*n))
	f.must(f.s.Fill(gpu.All(plain.C.Memory), 0))
	f.must(f.s.Multiply(plain))
	put(f.rig, f.s, f.p.C.Memory, 0, fill(n, func(int) uint16 { return gapBF16 }))
	f.must(f.s.Multiply(f.p))
	c = get[uint16](f.rig, f.s, f.p.C.Memory, 0, n)
	sums := get[float32](f.rig, f.s, plain.C.Memory, 0, n)
	for i := range f.p.M {
		for j := range f.stride {
			got := c[i*f.stride+j]
			if j >= f.p.N {
				if got != gapBF16 {
					f.Fatalf("%v: element %d, %d between rows was written", &f.p, i, j)
				}
				continue
			}
			x := half.FromBFloat16(got)
			if want, term := finish(sums[i*f.stride+j], x, i, j); !isRounded(x, want, term) {
				f.Fatalf("%v: element %d, %d is %v, want %v", &f.p, i, j, x, want)
			}
		}
	}
	return c, true
}
