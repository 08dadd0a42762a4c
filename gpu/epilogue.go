package gpu

import "strings"

// Epilogue is what a product does with its elements before it writes them, instead of operations of their own that read and
// write C again. The zero value does nothing. A region without a memory is not there.
//
// In a forward pass, C = op(A)·op(B) + Bias, and then ReLU. In a backward pass, C = op(A)·op(B) where DeriveMask says that the
// forward pass had a positive element, and otherwise 0. A product does one of both, and does not Accumulate.
//
// ReLU is x < 0 ? 0 : x, and a Mask says where x > 0. CUDA devices may differ in two values, which their
// documentation leaves open: ReLU makes 0 of NaN, so that a loss may be finite though a layer had NaN, and a Mask may count 0 as positive.
type Epilogue struct {
	Bias Region // N numbers, which are added to each row
	ReLU bool
	Mask Region // with ReLU: MaskBytes(M, N) bytes, which the product writes, for a DeriveMask

	DeriveMask Region // the Mask of a product that had the same M and N
	Sums       Region // with DeriveMask: N float32, which the product writes: the sums of C's columns

	// Round makes C bfloat16, to which each element is rounded last. It is of products of bfloat16, whose Bias is bfloat16 then,
	// too, and which have no Sums. A CUDA device may round op(A)·op(B) as well, before it adds Bias: cuBLASLt 13.1 does for some shapes on
	// an H100.
	Round bool
}

// maskAlignment is the bytes that a mask begins at a multiple of, and that each of its rows has a multiple of: one bit for each
// element, with rows of whole 128 bits, as cuBLASLt wants it.
const maskAlignment = 16

// MaskBytes is the size of the mask of a product. What it holds is the device's own affair.
func MaskBytes(m, n int) int {
	return m * ((n + 8*maskAlignment - 1) / (8 * maskAlignment)) * maskAlignment
}

func (r Region) exists() bool { return r.Memory != nil }

// Any tells whether the epilogue does anything that not all devices can: all can Round.
func (e *Epilogue) Any() bool {
	return e.ReLU || e.Bias.exists() || e.Mask.exists() || e.DeriveMask.exists() || e.Sums.exists()
}

// resultBytes is the size of an element of C, and of Bias.
func (e *Epilogue) resultBytes() int {
	if e.Round {
		return 2
	}
	return 4
}

// String names what the epilogue does, such as "bias+relu+mask"; nothing is "".
func (e *Epilogue) String() string {
	var parts []string
	for _, part := range []struct {
		name  string
		there bool
	}{
		{"bias", e.Bias.exists()}, {"relu", e.ReLU}, {"mask", e.Mask.exists()}, {"derive", e.DeriveMask.exists()}, {"sums", e.Sums.exists()}, {"round", e.Round},
	} {
		if part.there {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, "+")
}

// checkEpilogue returns an InvalidArgument unless the product, whose matrices are a, b and c, can have its epilogue.
func (p *Product) checkEpilogue(a, b, c Region) error {
	e := &p.Epilogue
	forward := e.Bias.exists() || e.ReLU
	switch {
	case !e.Any() && !e.Round:
		return nil
	case p.Accumulate:
		return Invalid("a product with an epilogue accumulates")
	case e.Mask.exists() && !e.ReLU:
		return Invalid("an epilogue with a Mask has no ReLU")
	case e.Sums.exists() && !e.DeriveMask.exists():
		return Invalid("an epilogue with Sums has no DeriveMask")
	case forward && e.DeriveMask.exists():
		return Invalid("an epilogue is of a forward and of a backward pass")
	case e.Round && (p.Precision != BF16Product || e.Sums.exists()):
		return Invalid("an epilogue that rounds to bfloat16 is of a product of %v, or has Sums", p.Precision)
	}
	parts := [...]part{
		{"C", c, true, 0, 0}, {"A", a, false, 0, 0}, {"B", b, false, 0, 0},
		{"Bias", e.Bias, false, e.resultBytes() * p.N, e.resultBytes()}, {"Sums", e.Sums, true, 4 * p.N, 4},
		{"Mask", e.Mask, true, MaskBytes(p.M, p.N), maskAlignment}, {"DeriveMask", e.DeriveMask, false, MaskBytes(p.M, p.N), maskAlignment},
	}
	const matrices = 3 // which are checked
	for i := matrices; i < len(parts); i++ {
		if err := parts[i].check(parts[:i]); err != nil {
			return err
		}
	}
	return nil
}

// part is a region that a product uses.
type part struct {
	name             string
	region           Region
	writes           bool
	bytes, alignment int // that it must have
}

// check returns an InvalidArgument if v, which may not be there, is no vector of its size or overlaps what it must not.
func (v *part) check(others []part) error {
	r := v.region
	if !r.exists() {
		return nil
	}
	if err := r.Check(v.name); err != nil {
		return err
	}
	if r.Rows != 1 || r.Width != v.bytes || r.Offset%v.alignment != 0 {
		return Invalid("%s is %v, and should be %d bytes that begin at a multiple of %d", v.name, r, v.bytes, v.alignment)
	}
	for _, o := range others {
		if (v.writes || o.writes) && o.region.exists() && r.Overlaps(o.region) {
			return Invalid("%s overlaps %s, and one of them is written: %v, %v", v.name, o.name, r, o.region)
		}
	}
	return nil
}

// ProductShape is what it depends on whether, and how, a device does a product and its epilogue in one operation.
type ProductShape struct {
	Precision                 Precision
	TransA, TransB            bool
	M, N, K                   int
	StrideA, StrideB, StrideC int

	Bias, ReLU, Mask, Derives, Sums, Round bool // what the epilogue has

	// The powers of two, up to 256, that the places of the matrices and of what the epilogue has are multiples of. Memory
	// begins at a multiple of 256.
	AlignA, AlignB, AlignC, AlignBias, AlignMask, AlignSums int
}

// Shape is the shape of the product.
func (p *Product) Shape() ProductShape {
	e := &p.Epilogue
	mask := e.Mask
	if e.DeriveMask.exists() {
		mask = e.DeriveMask
	}
	return ProductShape{
		Precision: p.Precision, TransA: p.TransA, TransB: p.TransB, M: p.M, N: p.N, K: p.K,
		StrideA: p.A.Stride, StrideB: p.B.Stride, StrideC: p.C.Stride,
		Bias: e.Bias.exists(), ReLU: e.ReLU, Mask: e.Mask.exists(), Derives: e.DeriveMask.exists(), Sums: e.Sums.exists(), Round: e.Round,
		AlignA: alignment(p.A.Offset), AlignB: alignment(p.B.Offset), AlignC: alignment(p.C.Offset),
		AlignBias: alignment(e.Bias.Offset), AlignMask: alignment(mask.Offset), AlignSums: alignment(e.Sums.Offset),
	}
}

// alignment is the highest power of two, up to 256, that an offset is a multiple of.
func alignment(offset int) int {
	const most = 256
	return (offset | most) & -(offset | most)
}
