package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ScaleVectors returns the vectors of v (P*D), each multiplied by its number in x: for every
// example, vector p is x_p·v_p, (N, P*D). dim is D. With it, a factorization machine has vectors
// for numbers as well as for categories.
//
// Its derivative with regard to v is the sum over the examples of x_p·dy_p. x is an input of the
// network, which needs no derivative.
func ScaleVectors(dim int, x, v *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&scaleVectors{base: newBase(2, "scale-vectors"), dim: dim}, x, v)
}

type scaleVectors struct {
	base
	dim int
}

func (op *scaleVectors) Type() hm.Type { return hm.NewFnType(floats(2), floats(1), floats(2)) }

func (op *scaleVectors) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	x, v := shapeOf(ds[0]), shapeOf(ds[1])
	if len(x) != 2 || len(v) != 1 || v[0] != x[1]*op.dim {
		return nil, fmt.Errorf("x is %v, the vectors are %v, for vectors of %d", x, v, op.dim)
	}
	return tensor.Shape{x[0], v[0]}, nil
}

func (op *scaleVectors) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, p := matrix(in[0])
	v := dense(in[1]).Float32s()
	y, ydata := op.out(n, p*op.dim)
	parallel(n, rowGrain(p*op.dim), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			scale(op.dim, x[i*p:(i+1)*p], v, ydata[i*p*op.dim:])
		}
	})
	return y, nil
}

// scale writes the vectors of v, multiplied by x, into out.
func scale(dim int, x, v, out []float32) {
	for f, factor := range x {
		o := out[f*dim : (f+1)*dim]
		copy(o, v[f*dim:])
		kernel.Scale(factor, o)
	}
}

func (op *scaleVectors) DiffWRT(int) []bool { return []bool{false, true} }

func (op *scaleVectors) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	terms, err := apply(&scaleVectorsGrad{base: newBase(2, "scale-vectors-grad"), dim: op.dim}, in[0], dy)
	if err != nil {
		return nil, err
	}
	dv, err := colSum(terms)
	return gorgonia.Nodes{nil, dv}, err
}

// scaleVectorsGrad computes x_p·dy_p of every example, (N, P*D). Their column sums are the
// derivative.
type scaleVectorsGrad struct {
	base
	dim int
}

func (op *scaleVectorsGrad) Type() hm.Type { return matrices(2) }

func (op *scaleVectorsGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return shapeOf(ds[1]).Clone(), nil
}

func (op *scaleVectorsGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, p := matrix(in[0])
	dy, _, c := matrix(in[1])
	terms, tdata := op.out(n, c)
	parallel(n, rowGrain(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			scale(op.dim, x[i*p:(i+1)*p], dy[i*c:(i+1)*c], tdata[i*c:])
		}
	})
	return terms, nil
}
