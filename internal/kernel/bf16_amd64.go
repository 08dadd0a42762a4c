package kernel

import (
	"math"
	"sync"
	"unsafe"
)

// copySteps sets dst to the steps from step on of row, which has all of k, as p.kind wants them.
func (p *product) copySteps(dst, row []float32, step int) {
	switch p.kind {
	case elementsFloat:
		copy(dst, row[step:])
	case elementsPairs:
		pairsBF16(dst, row[2*step:])
	case elementsBF16:
		swapBF16(dst, row[step:])
	}
}

// stepAcross sets dst to one step of columns from column on of x, whose rows are steps of
// k, as p.kind wants it.
func (p *product) stepAcross(dst, x []float32, ldx, column, step int) {
	if p.kind == elementsPairs {
		lo := x[2*step*ldx+column:][:len(dst)]
		if 2*step+1 == p.depth {
			pairsBF16Rows(dst, lo, nil)
			return
		}
		pairsBF16Rows(dst, lo, x[(2*step+1)*ldx+column:][:len(dst)])
		return
	}
	step ^= 1
	if step == p.depth {
		clear(dst)
		return
	}
	roundBF16(dst, x[step*ldx+column:][:len(dst)])
}

// packPanelBF16 packs some steps of columns of B into dst.
func (p *product) packPanelBF16(dst []float32, column, columns, step, steps int) {
	width := p.set.columns()
	if !p.transB {
		for s := range steps {
			p.stepAcross(dst[s*width:][:columns], p.b, p.ldb, column, step+s)
		}
		return
	}
	rows := lines.Get().(*[]float32)
	*rows = grow(*rows, columns*steps)
	for j := range columns {
		p.copySteps((*rows)[j*steps:][:steps], p.b[(column+j)*p.ldb:][:p.depth], step)
	}
	transpose(dst, width, *rows, steps, columns, steps)
	lines.Put(rows)
}

// lines are panels on the way through transpose.
var lines = sync.Pool{New: func() any { return new([]float32) }}

// roundBF16 sets dst[i] to src[i] rounded to bfloat16.
func roundBF16(dst, src []float32) {
	w := len(dst) &^ 7
	if w > 0 {
		bf16RoundAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	for i := w; i < len(dst); i++ {
		dst[i] = RoundBF16(src[i])
	}
}

// swapBF16 sets the pairs of dst to those of src, rounded and exchanged. Where src ends in
// a pair, the other half is a zero.
func swapBF16(dst, src []float32) {
	w := min(len(dst), len(src)) &^ 7
	if w > 0 {
		bf16SwapAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	for i := w; i < len(dst); i++ {
		dst[i] = 0
		if i^1 < len(src) {
			dst[i] = RoundBF16(src[i^1])
		}
	}
}

// pairsBF16 sets word i of dst to elements 2i and 2i+1 of src, or a zero beyond its end.
func pairsBF16(dst, src []float32) {
	w := min(len(dst), len(src)/2) &^ 7
	if w > 0 {
		bf16PairsAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	for i := w; i < len(dst); i++ {
		hi := float32(0)
		if 2*i+1 < len(src) {
			hi = src[2*i+1]
		}
		dst[i] = pairBF16(src[2*i], hi)
	}
}

// pairsBF16Rows sets word i of dst to lo[i] and hi[i], or a zero if hi is nil.
func pairsBF16Rows(dst, lo, hi []float32) {
	w := 0
	if hi != nil {
		if w = len(dst) &^ 7; w > 0 {
			bf16RowsAVX2(unsafe.SliceData(dst), unsafe.SliceData(lo), unsafe.SliceData(hi), w)
		}
	}
	for i := w; i < len(dst); i++ {
		h := float32(0)
		if hi != nil {
			h = hi[i]
		}
		dst[i] = pairBF16(lo[i], h)
	}
}

// pairBF16 returns the word of two numbers rounded to bfloat16.
func pairBF16(lo, hi float32) float32 {
	return math.Float32frombits(math.Float32bits(RoundBF16(lo))>>16 | math.Float32bits(RoundBF16(hi)))
}
