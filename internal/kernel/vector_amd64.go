package kernel

import "unsafe"

//go:generate go run ./gen

// vectorWidth divides the lengths that the assembler takes; the portable
// kernels do the rest. Memory bounds these functions, so there is no AVX-512
// version.
const vectorWidth = 8

// whole returns how many of n elements the assembler handles.
func whole(n int) int {
	if level.Load() < levelAVX2 {
		return 0
	}
	return n &^ (vectorWidth - 1)
}

func addVector(dst, a []float32) {
	w := whole(len(a))
	if w > 0 {
		addAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), w)
	}
	addPortable(dst[w:], a[w:])
}

func mulVector(dst, a, b []float32) {
	w := whole(len(a))
	if w > 0 {
		mulAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), w)
	}
	mulPortable(dst[w:], a[w:], b[w:])
}

func mulThenAddVector(dst, a, b, c []float32) {
	w := whole(len(a))
	if w > 0 {
		mulThenAddAVX2(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), unsafe.SliceData(c), w)
	}
	mulThenAddPortable(dst[w:], a[w:], b[w:], c[w:])
}

func scaleVector(dst, src []float32, alpha float32) {
	w := whole(len(src))
	if w > 0 {
		scaleAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w, alpha)
	}
	scalePortable(dst[w:], src[w:], alpha)
}

func axpyVector(y, x []float32, alpha float32) {
	w := whole(len(x))
	if w > 0 {
		axpyAVX2(unsafe.SliceData(y), unsafe.SliceData(x), w, alpha)
	}
	axpyPortable(y[w:], x[w:], alpha)
}

func reluVector(dst, src []float32) {
	w := whole(len(src))
	if w > 0 {
		reluAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	reluPortable(dst[w:], src[w:])
}

func reluBackwardVector(dst, grad, out []float32) {
	w := whole(len(out))
	if w > 0 {
		reluBackwardAVX2(unsafe.SliceData(dst), unsafe.SliceData(grad), unsafe.SliceData(out), w)
	}
	reluBackwardPortable(dst[w:], grad[w:], out[w:])
}

func sigmoidBackwardVector(dst, grad, out []float32) {
	w := whole(len(out))
	if w > 0 {
		sigmoidBackwardAVX2(unsafe.SliceData(dst), unsafe.SliceData(grad), unsafe.SliceData(out), w)
	}
	sigmoidBackwardPortable(dst[w:], grad[w:], out[w:])
}

func tanhBackwardVector(dst, grad, out []float32) {
	w := whole(len(out))
	if w > 0 {
		tanhBackwardAVX2(unsafe.SliceData(dst), unsafe.SliceData(grad), unsafe.SliceData(out), w)
	}
	tanhBackwardPortable(dst[w:], grad[w:], out[w:])
}

func sigmoidVector(dst, src []float32) {
	w := whole(len(src))
	if w > 0 {
		sigmoidAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	sigmoidPortable(dst[w:], src[w:])
}

func tanhVector(dst, src []float32) {
	w := whole(len(src))
	if w > 0 {
		tanhAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	tanhPortable(dst[w:], src[w:])
}

func softplusVector(dst, src []float32) {
	w := whole(len(src))
	if w > 0 {
		softplusAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), w)
	}
	softplusPortable(dst[w:], src[w:])
}

// sumLanes adds x, a multiple of 16 elements, to the lanes.
func sumLanes(l *[lanes]float32, x []float32) {
	if whole(len(x)) == 0 {
		sumLanesPortable(l, x)
		return
	}
	sumLanesAVX2(l, unsafe.SliceData(x), len(x))
}

// dotLanes adds the products of a and b, multiples of 16 elements, to the
// lanes.
func dotLanes(l *[lanes]float32, a, b []float32) {
	if whole(len(a)) == 0 {
		dotLanesPortable(l, a, b)
		return
	}
	dotLanesAVX2(l, unsafe.SliceData(a), unsafe.SliceData(b), len(a))
}
