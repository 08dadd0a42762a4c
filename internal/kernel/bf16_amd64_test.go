package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func init() {
	if !hasBF16() {
		return
	}
	withPairs = func(uses bool, f func()) {
		before := usesPairs
		usesPairs = func() bool { return uses }
		defer func() { usesPairs = before }()
		f()
	}
}

// eachConversion runs f with all the ways in which this processor makes pairs of bfloat16.
func eachConversion(f func()) {
	before := convertsBF16
	defer func() { convertsBF16 = before }()
	for convertsBF16 = false; ; convertsBF16 = true {
		f()
		if convertsBF16 == before {
			return
		}
	}
}

// The conversions by vectors are RoundBF16.
func TestBF16Conversions(t *testing.T) {
	if Level() == "portable" {
		t.Skip("no AVX2")
	}
	eachConversion(func() { testBF16Conversions(t) })
}

func testBF16Conversions(t *testing.T) {
	r := seeded(t, 11)
	for range 300 {
		n := 2 * (1 + r.IntN(40))
		src := small(r, make([]float32, n))
		want, got := make([]float32, n), make([]float32, n)
		for i := range want {
			want[i] = RoundBF16(src[i^1])
		}
		swapBF16(got, src)
		wantSame(t, "swapBF16", want, got)
		want, got = want[:n/2], got[:n/2]
		for i := range want {
			want[i] = pairBF16(src[2*i], src[2*i+1])
		}
		pairsBF16(got, src)
		wantSamePairs(t, "pairsBF16", want, got)
	}
}

// small fills x with random bits, half of the time only with those of small numbers.
func small(r *rand.Rand, x []float32) []float32 {
	anything(r, x)
	if r.IntN(2) == 0 {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32()>>1&0x00ffffff | r.Uint32()&1<<31)
		}
	}
	return x
}

// wantSamePairs is wantSame for words of two numbers.
func wantSamePairs(t *testing.T, what string, want, got []float32) {
	t.Helper()
	halves := func(x []float32) (out []float32) {
		for _, v := range x {
			bits := math.Float32bits(v)
			out = append(out, math.Float32frombits(bits<<16), math.Float32frombits(bits&0xffff0000))
		}
		return out
	}
	wantSame(t, what, halves(want), halves(got))
}

// Rows along k are packed as the kernels want them, also those that end where the matrix does.
func TestPackRowsBF16(t *testing.T) {
	if Level() == "portable" {
		t.Skip("no AVX2")
	}
	eachConversion(func() { testPackRowsBF16(t) })
}

func testPackRowsBF16(t *testing.T) {
	r := seeded(t, 12)
	for range 500 {
		depth, all, width := 1+r.IntN(40), 1+r.IntN(80), 8*(1+r.IntN(8))
		ldx := all + r.IntN(3)
		x := small(r, make([]float32, (depth-1)*ldx+all))
		column := r.IntN(all)
		columns := min(width, 1+r.IntN(all-column))
		element := func(row, j int) float32 { // 0 beyond the end
			if row >= depth {
				return 0
			}
			return x[row*ldx+column+j]
		}
		p := product{operands: operands{depth: depth}}
		for _, p.kind = range []elements{elementsPairs, elementsBF16} {
			k := (depth + 1) / 2
			if p.kind == elementsBF16 {
				k *= 2
			}
			step := r.IntN(k) &^ 1
			n := k - step
			dst := make([]float32, n*width)
			p.packRows(dst, width, x, ldx, column, columns, step, n)
			want, got := make([]float32, columns), make([]float32, columns)
			for s := range n {
				copy(got, dst[s*width:])
				for j := range want {
					if p.kind == elementsBF16 {
						want[j] = RoundBF16(element((step+s)^1, j))
					} else {
						want[j] = pairBF16(element(2*(step+s), j), element(2*(step+s)+1, j))
					}
				}
				what := fmt.Sprintf("step %d of %d, %d of %d columns, width %d, kind %d", step+s, k, columns, all, width, p.kind)
				if p.kind == elementsBF16 {
					wantSame(t, what, want, got)
				} else {
					wantSamePairs(t, what, want, got)
				}
			}
		}
	}
}

// The check of the instruction finds kernels that round in another way, and leaves the level
// as it is.
func TestAgrees(t *testing.T) {
	for _, name := range Levels()[1:] {
		l, err := findLevel(name)
		if err != nil {
			t.Fatal(err)
		}
		before := Level()
		if !agrees(l, elementsBF16, elementsBF16) {
			t.Errorf("%s: the kernels do not agree with themselves", name)
		}
		if agrees(l, elementsFloat, elementsBF16) {
			t.Errorf("%s: products in float32 are taken for those in bfloat16", name)
		}
		if Level() != before {
			t.Errorf("the level was %s and is %s", before, Level())
		}
	}
}
