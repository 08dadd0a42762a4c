package kernel

import (
	"math"
	"sync"
	"unsafe"
)

// copySteps copies the steps of row, which has all of k, from step on to dst, in the form that
// p.kind requires.
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

// packRowsBF16 is packRows for bfloat16.
func (p *product) packRowsBF16(dst []float32, width int, x []float32, ldx, column, columns, step, n int) {
	// The rows of x by pairs, of which each gives one step or two.
	first, pairs := 2*step, n
	if p.kind == elementsBF16 {
		first, pairs = step, n/2
	}
	src := x[first*ldx+column:]
	vectors := (columns + 7) / 8
	whole := 0 // pairs of which whole vectors can be read
	if len(src) >= ldx+8*vectors {
		whole = min(pairs, (p.depth-first)/2, ((len(src)-8*vectors)/ldx+1)/2)
	}
	if whole > 0 {
		rows := bf16PairRowsAVX2
		switch {
		case p.kind == elementsBF16:
			rows = bf16SwapRowsAVX2
		case convertsBF16:
			rows = bf16PairRows512
		}
		rows(unsafe.SliceData(dst), unsafe.SliceData(src), floatBytes*width, floatBytes*ldx, vectors, whole)
	}
	for i := whole; i < pairs; i++ {
		lo, hi := src[2*i*ldx:][:columns], []float32(nil)
		if first+2*i+1 < p.depth {
			hi = src[(2*i+1)*ldx:][:columns]
		}
		for j, l := range lo {
			h := float32(0)
			if hi != nil {
				h = hi[j]
			}
			if p.kind == elementsBF16 {
				dst[2*i*width+j], dst[(2*i+1)*width+j] = RoundBF16(h), RoundBF16(l)
			} else {
				dst[i*width+j] = pairBF16(l, h)
			}
		}
	}
}

// packPanelBF16 packs some steps of columns of a transposed B into dst.
func (p *product) packPanelBF16(dst []float32, column, columns, step, steps int) {
	rows := lines.Get().(*[]float32)
	*rows = grow(*rows, columns*steps)
	for j := range columns {
		p.copySteps((*rows)[j*steps:][:steps], p.b[(column+j)*p.ldb:][:p.depth], step)
	}
	transpose(dst, p.set.columns(), *rows, steps, columns, steps)
	lines.Put(rows)
}

// lines pools temporary panels for transpose.
var lines = sync.Pool{New: func() any { return new([]float32) }}

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
		pairs := bf16PairsAVX2
		if convertsBF16 {
			pairs = bf16Pairs512
		}
		pairs(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	for i := w; i < len(dst); i++ {
		hi := float32(0)
		if 2*i+1 < len(src) {
			hi = src[2*i+1]
		}
		dst[i] = pairBF16(src[2*i], hi)
	}
}

// pairBF16 returns the word of two numbers rounded to bfloat16.
func pairBF16(lo, hi float32) float32 {
	return math.Float32frombits(math.Float32bits(RoundBF16(lo))>>16 | math.Float32bits(RoundBF16(hi)))
}
