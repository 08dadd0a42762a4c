package kernel

import "unsafe"

// Each vector method does as many of the elements as the assembler can, and returns how many.

func (c *SGD) vector(w, g []float32) int {
	n := whole(len(w))
	if n > 0 {
		sgdAVX2(unsafe.SliceData(w), unsafe.SliceData(g), n, c)
	}
	return n
}

func (c *Momentum) vector(w, g, b []float32) int {
	n := whole(len(w))
	if n > 0 {
		momentumAVX2(unsafe.SliceData(w), unsafe.SliceData(g), unsafe.SliceData(b), n, c)
	}
	return n
}

func (c *Adagrad) vector(w, g, s []float32) int {
	n := whole(len(w))
	if n > 0 {
		adagradAVX2(unsafe.SliceData(w), unsafe.SliceData(g), unsafe.SliceData(s), n, c)
	}
	return n
}

func (c *Adam) vector(w, g, m, v []float32) int {
	n := whole(len(w))
	if n > 0 {
		adamAVX2(unsafe.SliceData(w), unsafe.SliceData(g), unsafe.SliceData(m), unsafe.SliceData(v), n, c)
	}
	return n
}
