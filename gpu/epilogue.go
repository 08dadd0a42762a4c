package gpu

// Epilogue is what a product does with its elements before it writes them, which saves a separate
// operation that reads and writes C again: C = op(A)·op(B) + Bias, followed by ReLU. The zero value
// does nothing.
//
// ReLU is x < 0 ? 0 : x. On CUDA devices it may turn NaN into 0, which NVIDIA's documentation
// leaves open; a loss may then be finite although a layer had NaN.
type Epilogue struct {
	Bias Region // N numbers of C's format, which are added to each row; no memory: none
	ReLU bool
}

// Any tells whether the epilogue does anything.
func (e *Epilogue) Any() bool { return e.ReLU || e.Bias.Memory != nil }

// String names what the epilogue does, such as "bias+relu"; nothing is "".
func (e *Epilogue) String() string {
	switch {
	case e.Bias.Memory == nil && e.ReLU:
		return "relu"
	case e.ReLU:
		return "bias+relu"
	case e.Any():
		return "bias"
	}
	return ""
}

// checkEpilogue returns an InvalidArgument unless the product, whose result is c, can have its epilogue.
func (p *Product) checkEpilogue(c Region) error {
	bias, size := p.Epilogue.Bias, p.ResultBytes()
	if bias.Memory == nil {
		return nil
	}
	if err := bias.Check("Bias"); err != nil {
		return err
	}
	if bias.Rows != 1 || bias.Width != size*p.N || bias.Offset%size != 0 {
		return Invalid("Bias is %v, and should be %d numbers of %d bytes", bias, p.N, size)
	}
	if bias.Overlaps(c) {
		return Invalid("Bias overlaps C, which is written: %v, %v", bias, c)
	}
	return nil
}

// ProductShape has the properties that determine whether, and how, a device does a product and its
// epilogue in one operation.
type ProductShape struct {
	Precision                 Precision
	TransA, TransB            bool
	M, N, K                   int
	StrideA, StrideB, StrideC int
	Bias, ReLU, Round         bool

	// The alignments of the matrices and of the bias: powers of two, up to 256. Memory is aligned
	// to 256.
	AlignA, AlignB, AlignC, AlignBias int
}

// Shape is the shape of the product.
func (p *Product) Shape() ProductShape {
	e := &p.Epilogue
	return ProductShape{
		Precision: p.Precision, TransA: p.TransA, TransB: p.TransB, M: p.M, N: p.N, K: p.K,
		StrideA: p.A.Stride, StrideB: p.B.Stride, StrideC: p.C.Stride,
		Bias: e.Bias.Memory != nil, ReLU: e.ReLU, Round: p.Round,
		AlignA: alignment(p.A.Offset), AlignB: alignment(p.B.Offset), AlignC: alignment(p.C.Offset), AlignBias: alignment(e.Bias.Offset),
	}
}

// alignment is the highest power of two, up to 256, that an offset is a multiple of.
func alignment(offset int) int {
	const most = 256
	return (offset | most) & -(offset | most)
}
