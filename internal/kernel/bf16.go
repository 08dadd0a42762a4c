package kernel

import "math"

// Products in bfloat16. The elements of A and B are rounded to bfloat16, to nearest, ties
// to even; denormal ones become zeros. Each element of C is one chain over pairs of k: for the
// pair p it becomes
//
//	c = c + a[2p+1]·b[2p+1]
//	c = c + a[2p]·b[2p]
//
// both fused, rounded to nearest float32, with denormal operands and results taken as
// zeros of their sign; where k is odd the last pair ends in zeros. This is what the
// instruction VDPBF16PS computes, which the level avx512 uses where the processor has it and
// is faster with it than with multiply-adds of float32: AMD's are, Intel's Emerald Rapids is not.
// Elsewhere the same chains run on float32 kernels, with k in that order and denormal numbers
// switched off: the fused multiply-add of float32 rounds as the instruction does. AMX is not
// used: it adds up the even and the odd k of a tile by themselves, which is another sum.

// RoundBF16 rounds x to bfloat16: to nearest, ties to even. A denormal number becomes a
// zero of its sign, NaN a quiet NaN.
func RoundBF16(x float32) float32 {
	bits := math.Float32bits(x)
	switch exponent := bits & 0x7f800000; {
	case x != x:
		bits |= 0x00400000
	case exponent == 0:
		bits &= 0x80000000
	default:
		bits += 0x7fff + bits>>16&1
	}
	return math.Float32frombits(bits & 0xffff0000)
}

// flush returns x, or a zero of its sign if x is denormal.
func flush(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & 0x80000000)
	}
	return x
}

// flushBelow is the smallest number that rounds to the smallest normal float32 if the exponent is
// unbounded: a result counts as denormal according to its value after rounding.
const flushBelow = 0x1p-126 - 0x1p-151

// fmaFlush returns a*b + c with denormal numbers taken as zeros, for a and b that are
// bfloat16 and not denormal.
func fmaFlush(a, b, c float32) float32 {
	s := oddSum(float64(a)*float64(b), float64(flush(c)))
	if s > -flushBelow && s < flushBelow {
		return float32(math.Copysign(0, s))
	}
	return float32(s)
}

// HasBF16 reports whether the processor has an instruction that makes products in bfloat16 faster
// than those in float32, at the current level. Otherwise they take somewhat longer.
func HasBF16() bool { return elementsAt(level.Load(), true) == elementsPairs }

// GemmBF16 is GemmEpilogue in bfloat16, with sums in float32; e may be nil. A and B are
// rounded on the way. Its results differ from those of Gemm, and they too are the same bit for
// bit at every level and for every number of threads.
func GemmBF16(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	gemmOn(Threads(), "GemmBF16", true, transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
}

// GemmBF16 is kernel.GemmBF16 on the caller's goroutine; e may be nil.
func (s *Scratch) GemmBF16(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	s.p.gemm("Scratch.GemmBF16", true, transA, transB, m, n, k, a, lda, b, ldb, accumulate, e, c, ldc)
}

// PackBF16 is Pack for products in bfloat16: GemmPacked then computes what GemmBF16 does.
func (b *PackedB) PackBF16(transposed bool, k, n int, x []float32, ldx int) {
	b.packAs("PackedB.PackBF16", true, transposed, k, n, x, ldx)
}

// gemmBF16Portable is GemmBF16 by the definition. B is rounded before.
func gemmBF16Portable(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, accumulate bool, e *Epilogue, c []float32, ldc int) {
	aRow, aCol := lda, 1
	if transA {
		aRow, aCol = 1, lda
	}
	even := (k + 1) &^ 1
	rounded := make([]float32, even*n) // op(B), with a row of zeros if k is odd
	for p := range k {
		for j := range n {
			if transB {
				rounded[p*n+j] = RoundBF16(b[j*ldb+p])
			} else {
				rounded[p*n+j] = RoundBF16(b[p*ldb+j])
			}
		}
	}
	for i := range m {
		row := c[i*ldc:][:n]
		for j := range row {
			if accumulate {
				row[j] = flush(row[j])
			} else {
				row[j] = 0
			}
		}
		for p := range even {
			p ^= 1 // the second number of each pair comes first
			v := float32(0)
			if p < k {
				v = RoundBF16(a[i*aRow+p*aCol])
			}
			axpyFlush(row, rounded[p*n:][:n], v)
		}
		if !e.empty() {
			e.finishRow(i, 0, row)
		}
	}
}

// axpyFlush sets y to fmaFlush(alpha, x, y), element by element. No element of y is denormal.
func axpyFlush(y, x []float32, alpha float32) {
	y = y[:len(x)]
	factor := float64(alpha)
	for i, v := range x {
		s := factor*float64(v) + float64(y[i])
		if bits := math.Float64bits(s); bits&lowBits == midpoint || bits<<1 < smallest {
			y[i] = fmaFlush(alpha, v, y[i])
			continue
		}
		y[i] = float32(s)
	}
}
