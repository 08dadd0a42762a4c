package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// problem is a matrix product to test.
type problem struct {
	transA, transB, accumulate bool
	m, n, k                    int
	a, b, c                    []float32
	lda, ldb, ldc              int
}

func (p *problem) String() string {
	return fmt.Sprintf("(%d, %d, %d) transA=%t transB=%t accumulate=%t lda=%d ldb=%d ldc=%d",
		p.m, p.n, p.k, p.transA, p.transB, p.accumulate, p.lda, p.ldb, p.ldc)
}

// newProblem draws matrices with fill, transposed as the two bits of transposed
// say; each row is followed by up to gap elements that belong to no matrix.
func newProblem(r *rand.Rand, transposed, m, n, k, gap int, fill func(*rand.Rand, []float32) []float32) *problem {
	p := &problem{m: m, n: n, k: k}
	p.transA, p.transB, p.accumulate = transposed&1 != 0, transposed&2 != 0, r.IntN(2) == 0
	matrix := func(rows, cols int) ([]float32, int) {
		stride := cols + r.IntN(gap+1)
		// The last row ends with the matrix: reading on would be a fault.
		return fill(r, make([]float32, max(0, (rows-1)*stride+cols))), stride
	}
	if p.transA {
		p.a, p.lda = matrix(k, m)
	} else {
		p.a, p.lda = matrix(m, k)
	}
	if p.transB {
		p.b, p.ldb = matrix(n, k)
	} else {
		p.b, p.ldb = matrix(k, n)
	}
	p.c, p.ldc = matrix(m, n)
	return p
}

// run returns C after the product; p.c stays as it is.
func (p *problem) run() []float32 {
	c := append([]float32(nil), p.c...)
	Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, c, p.ldc)
	return c
}

// define returns C by the definition, one chain at a time.
func (p *problem) define() []float32 {
	c := append([]float32(nil), p.c...)
	for i := range p.m {
		for j := range p.n {
			s := float32(0)
			if p.accumulate {
				s = c[i*p.ldc+j]
			}
			for q := range p.k {
				x, y := i*p.lda+q, q*p.ldb+j
				if p.transA {
					x = q*p.lda + i
				}
				if p.transB {
					y = j*p.ldb + q
				}
				s = FMA(p.a[x], p.b[y], s)
			}
			c[i*p.ldc+j] = s
		}
	}
	return c
}

// everyWay compares Gemm at all levels and several thread counts with want.
func everyWay(t *testing.T, p *problem, want []float32) {
	t.Helper()
	defer SetThreads(0)
	for _, name := range Levels() {
		atLevel(t, name, func() {
			threads := 1
			if name == "portable" && p.m*p.n*p.k > 1<<20 {
				threads = 4 // slow, once is enough
			}
			for ; threads <= 4; threads++ {
				SetThreads(threads)
				wantSame(t, fmt.Sprintf("%s, %d threads, %v", name, threads, p), want, p.run())
			}
		})
	}
}

func TestGemmSmall(t *testing.T) {
	r := seeded(t, 1)
	sizes := []int{0, 1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 27, 31, 32, 33, 47, 64, 65}
	size := func() int { return sizes[r.IntN(len(sizes))] }
	for range rounds(600) {
		fill := ordinary
		if r.IntN(4) == 0 {
			fill = anything
		}
		p := newProblem(r, r.IntN(4), size(), size(), size(), 5, fill)
		everyWay(t, p, p.define())
	}
}

// Sizes around the blocks of the blocked product.
func TestGemmBlocks(t *testing.T) {
	r := seeded(t, 2)
	shapes := [][3]int{
		{260, 40, 2*384 + 5}, {460, 17, 385}, {3, 4096 + 37, 9}, {70, 150, 384}, {231, 270, 390},
		{1, 300, 1000}, {300, 1, 1000}, {1, 1, 3000}, {15, 129, 800}, {64, 97, 129}, {500, 330, 16},
	}
	if testing.Short() {
		shapes = shapes[3:4] // the portable product takes long under the race detector
	}
	for _, s := range shapes {
		for transposed := range 4 {
			p := newProblem(r, transposed, s[0], s[1], s[2], 3, ordinary)
			var want []float32
			atLevel(t, "portable", func() { want = p.run() })
			everyWay(t, p, want)
		}
	}
}

// Denormal numbers, overflow and signed zeros must survive the blocking.
func TestGemmSpecials(t *testing.T) {
	r := seeded(t, 3)
	tiny := func(r *rand.Rand, x []float32) []float32 {
		for i := range x {
			x[i] = float32(r.NormFloat64() * 0x1p-70)
		}
		return x
	}
	for range 20 {
		p := newProblem(r, r.IntN(4), 30, 45, 20, 0, tiny)
		everyWay(t, p, p.define())
		p = newProblem(r, r.IntN(4), 30, 45, 20, 0, anything)
		everyWay(t, p, p.define())
	}
}

func TestGemmAccuracy(t *testing.T) {
	r := seeded(t, 4)
	for range 10 {
		p := newProblem(r, r.IntN(4), 1+r.IntN(60), 1+r.IntN(60), 1+r.IntN(900), 0, ordinary)
		c := p.run()
		for i := range p.m {
			for j := range p.n {
				sum, size := 0.0, 0.0
				if p.accumulate {
					sum = float64(p.c[i*p.ldc+j])
					size = math.Abs(sum)
				}
				for q := range p.k {
					x, y := i*p.lda+q, q*p.ldb+j
					if p.transA {
						x = q*p.lda + i
					}
					if p.transB {
						y = j*p.ldb + q
					}
					v := float64(p.a[x]) * float64(p.b[y])
					sum += v
					size += math.Abs(v)
				}
				// Each step of the chain rounds by at most 2^-24 of a partial sum.
				if err := math.Abs(float64(c[i*p.ldc+j]) - sum); err > float64(p.k)*0x1p-24*size {
					t.Fatalf("%v: element (%d, %d) is %g, want %g", p, i, j, c[i*p.ldc+j], sum)
				}
			}
		}
	}
}

// Bits of a product that must be the same on every machine and for ever.
func TestGemmKeepsItsBits(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 0)) // the digest is of these numbers
	even := func(r *rand.Rand, x []float32) []float32 {
		for i := range x {
			x[i] = float32(int32(r.Uint32())) * 0x1p-31
		}
		return x
	}
	h := uint64(14695981039346656037) // FNV-1a
	for transposed := range 4 {
		for _, v := range newProblem(r, transposed, 37, 45, 401, 0, even).run() {
			h = (h ^ uint64(math.Float32bits(v))) * 1099511628211
		}
	}
	if want := uint64(0xd95cb6cce519e956); h != want {
		t.Errorf("the digest is %#x, want %#x", h, want)
	}
}

func TestGemmMakesNoGarbage(t *testing.T) {
	if raceEnabled || Level() == "portable" {
		t.Skip("the race detector and the portable product make garbage of their own")
	}
	r := seeded(t, 5)
	p := newProblem(r, r.IntN(4), 300, 100, 200, 0, ordinary)
	defer SetThreads(0)
	for _, threads := range []int{1, 3} {
		SetThreads(threads)
		run := func() {
			Gemm(p.transA, p.transB, p.m, p.n, p.k, p.a, p.lda, p.b, p.ldb, p.accumulate, p.c, p.ldc)
		}
		run()
		// A collection in between may empty the pools; on average nothing is left.
		if n := testing.AllocsPerRun(50, run); n >= 1 {
			t.Errorf("%d threads: %g allocations a call", threads, n)
		}
	}
}

func TestGemmRefusesWrongSizes(t *testing.T) {
	x := make([]float32, 6)
	for name, f := range map[string]func(){
		"short a":      func() { Gemm(false, false, 2, 1, 4, x, 4, x, 1, false, x, 1) },
		"short c":      func() { Gemm(false, false, 3, 3, 1, x, 1, x, 3, false, x, 3) },
		"narrow rows":  func() { Gemm(false, false, 2, 1, 3, x, 2, x, 1, false, x, 1) },
		"negative":     func() { Gemm(false, false, -1, 1, 1, x, 1, x, 1, false, x, 1) },
		"transposed a": func() { Gemm(true, false, 3, 1, 2, x, 2, x, 1, false, x, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), uint8(14), uint8(32), uint8(7))
	f.Add(uint64(2), uint8(1), uint8(33), uint8(0))
	f.Add(uint64(3), uint8(29), uint8(1), uint8(100))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newProblem(r, int(seed%4), int(m), int(n), int(k), 4, anything)
		everyWay(t, p, p.define())
	})
}
