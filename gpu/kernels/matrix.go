package kernels

import "aibox/gpu"

// Matrix is rows of float32 in device memory. A vector is a matrix of one row. The zero value
// stands for an absent operand, if a method says that the operand is optional.
type Matrix struct {
	Memory  gpu.Memory
	Offset  int // of the first element, in bytes; a multiple of 4
	Columns int
	Stride  int // elements from one row to the next
}

// Region is what n rows take.
func (m Matrix) Region(n int) gpu.Region {
	return gpu.Region{Memory: m.Memory, Offset: m.Offset, Width: 4 * m.Columns, Rows: n, Pitch: 4 * m.Stride}
}

// Side is the matrix as one of a product.
func (m Matrix) Side() gpu.Matrix {
	return gpu.Matrix{Memory: m.Memory, Offset: m.Offset, Stride: m.Stride}
}

// Half is rows of bfloat16 in device memory.
type Half struct {
	Memory  gpu.Memory
	Offset  int // of the first element, in bytes; a multiple of 2
	Columns int
	Stride  int // elements from one row to the next
}

// Region is what n rows take.
func (h Half) Region(n int) gpu.Region {
	return gpu.Region{Memory: h.Memory, Offset: h.Offset, Width: 2 * h.Columns, Rows: n, Pitch: 2 * h.Stride}
}

// Side is the matrix as one of a product.
func (h Half) Side() gpu.Matrix {
	return gpu.Matrix{Memory: h.Memory, Offset: h.Offset, Stride: h.Stride}
}

// Slice is columns [lo, hi) of the matrix.
func (m Matrix) Slice(lo, hi int) Matrix {
	return Matrix{Memory: m.Memory, Offset: m.Offset + 4*lo, Columns: hi - lo, Stride: m.Stride}
}

// given reports whether the operand is present.
func (m Matrix) given() bool { return m.Memory != nil }
