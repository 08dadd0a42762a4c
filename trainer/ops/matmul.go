package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// matMul returns the product of two matrices, each of which may be transposed. It appears in
// derivatives.
func matMul(transA, transB bool, a, b *gorgonia.Node) (*gorgonia.Node, error) {
	t := map[bool]string{true: "ᵀ"}
	return apply(&matmul{base: newBase(2, "a%s·b%s", t[transA], t[transB]), transA: transA, transB: transB}, a, b)
}

type matmul struct {
	base
	transA, transB bool
}

func (op *matmul) Type() hm.Type { return matrices(2) }

func (op *matmul) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	m, n, ka, kb := op.sizes(s[0], s[1])
	if ka != kb {
		return nil, fmt.Errorf("a is %v, b is %v", s[0], s[1])
	}
	return tensor.Shape{m, n}, nil
}

func (op *matmul) sizes(a, b [2]int) (m, n, ka, kb int) {
	if op.transA {
		a[0], a[1] = a[1], a[0]
	}
	if op.transB {
		b[0], b[1] = b[1], b[0]
	}
	return a[0], b[1], a[1], b[0]
}

func (op *matmul) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	a, ar, ac := matrix(in[0])
	b, br, bc := matrix(in[1])
	m, n, k, _ := op.sizes([2]int{ar, ac}, [2]int{br, bc})
	c, cdata := op.out(m, n)
	inputs, outputs := m, n // of the layer
	if !op.transA {
		inputs, outputs = n, k
	}
	multiplyMatrices(inputs, outputs, op.transA, op.transB, m, n, k, a, ac, b, bc, cdata)
	return c, nil
}

// BF16 reports for which layers the ops' methods Do multiply in bfloat16. Tests set it, so that
// Gorgonia's machine is the oracle of an engine in that precision, too.
var BF16 = func(inputs, outputs int) bool { return false }

// multiplyMatrices sets c (m, n), without gaps, to a product of a layer.
func multiplyMatrices(inputs, outputs int, transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32) {
	if BF16(inputs, outputs) {
		kernel.GemmBF16(transA, transB, m, n, k, a, lda, b, ldb, false, nil, c, n)
		return
	}
	kernel.Gemm(transA, transB, m, n, k, a, lda, b, ldb, false, c, n)
}

// colSum returns the sums (C) of the columns of x (N, C).
func colSum(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&colsum{base: newBase(1, "column-sum")}, x)
}

type colsum struct{ base }

func (op *colsum) Type() hm.Type { return hm.NewFnType(floats(2), floats(1)) }

func (op *colsum) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s[0][1]}, nil
}

func (op *colsum) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(c)
	kernel.ColSum(n, c, x, c, false, ydata)
	return y, nil
}
