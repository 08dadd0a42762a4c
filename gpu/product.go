package gpu

import "fmt"

// Precision is the number format of the sides of a product. Sums are float32, and so is the
// result, unless the product rounds it.
type Precision uint8

const (
	Float32Product Precision = iota // sides are float32
	TF32Product                     // sides are float32 in memory; the device rounds them to 10 bits behind the point
	BF16Product                     // sides are bfloat16 in memory
)

func (p Precision) String() string { return [...]string{"float32", "tf32", "bf16"}[p] }

// Bytes is the size of an element of a side in memory.
func (p Precision) Bytes() int {
	if p == BF16Product {
		return 2
	}
	return 4
}

// Matrix is a row-major matrix in memory. Its sizes are those of the product.
type Matrix struct {
	Memory Memory
	Offset int // of the first element, in bytes; a multiple of the element's size
	Stride int // elements from one row to the next
}

// Product is C = op(A)·op(B), as kernel.Gemm has it:
//
//	A is (M, K), or (K, M) if TransA
//	B is (K, N), or (N, K) if TransB
//	C is (M, N); it overlaps neither A nor B
//
// With K = 0 the product is 0. C is written without being read. What lies between its rows stays as it is.
//
// All devices can do that. A product may do more with its elements: see Epilogue. Whether a device
// can must be asked before: see Stream.Fuses.
type Product struct {
	Precision      Precision
	TransA, TransB bool
	M, N, K        int
	A, B, C        Matrix
	Epilogue       Epilogue

	// Round makes C bfloat16; each element is rounded as the last step. It is for bfloat16 products
	// with K of at least 1. A CUDA device may additionally round op(A)·op(B) before it adds a bias:
	// cuBLASLt 13.1 does for some shapes on an H100.
	Round bool
}

// ResultBytes is the size of an element of C in memory.
func (p *Product) ResultBytes() int {
	if p.Round {
		return 2
	}
	return 4
}

// String names precision, sizes and what is done with the elements.
func (p *Product) String() string {
	s := fmt.Sprintf("product %v %dx%dx%d", p.Precision, p.M, p.N, p.K)
	if p.Epilogue.Any() {
		s += " " + p.Epilogue.String()
	}
	if p.Round {
		s += " rounded"
	}
	return s
}

// Regions checks the product and returns its matrices. What else it reads is the bias of its Epilogue.
func (p *Product) Regions() (a, b, c Region, err error) {
	if p.M < 0 || p.N < 0 || p.K < 0 {
		return a, b, c, Invalid("a product of M=%d, N=%d, K=%d", p.M, p.N, p.K)
	}
	if p.Precision > BF16Product {
		return a, b, c, Invalid("a product of unknown precision %d", uint8(p.Precision))
	}
	if p.Round && (p.Precision != BF16Product || p.K == 0) {
		return a, b, c, Invalid("a product that rounds has sides of %v, K=%d", p.Precision, p.K)
	}
	if a, err = p.A.region("A", p.M, p.K, p.TransA, p.Precision.Bytes()); err != nil {
		return a, b, c, err
	}
	if b, err = p.B.region("B", p.K, p.N, p.TransB, p.Precision.Bytes()); err != nil {
		return a, b, c, err
	}
	if c, err = p.C.region("C", p.M, p.N, false, p.ResultBytes()); err != nil {
		return a, b, c, err
	}
	if c.Overlaps(a) || c.Overlaps(b) {
		return a, b, c, Invalid("C overlaps a side of the product: C %v, A %v, B %v", c, a, b)
	}
	return a, b, c, p.checkEpilogue(c)
}

func (m Matrix) region(name string, rows, columns int, transposed bool, size int) (Region, error) {
	if transposed {
		rows, columns = columns, rows
	}
	if m.Offset%size != 0 {
		return Region{}, Invalid("%s begins at byte %d, which is no multiple of %d", name, m.Offset, size)
	}
	r := Region{Memory: m.Memory, Offset: m.Offset, Width: columns * size, Rows: rows, Pitch: m.Stride * size}
	return r, r.Check(name)
}
