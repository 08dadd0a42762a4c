package ops

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// cross returns one layer of a cross network, x0 ⊙ z + bias + xl (N, C). x0 (N, C) is the network's
// input and xl (N, C) the layer's; bias is (C) or nil. z is (N, 1) and multiplies whole rows
// (version 1, Wang et al. 2017), or (N, C) and multiplies element by element (version 2, Wang et
// al. 2020, where the bias is part of z).
func cross(x0, z, xl, bias *gorgonia.Node) (*gorgonia.Node, error) {
	if bias == nil {
		return apply(&crossOp{base: newBase(3, "cross")}, x0, z, xl)
	}
	return apply(&crossOp{base: newBase(4, "cross(bias)")}, x0, z, xl, bias)
}

// CrossVector returns x0·(xl·w) + b + xl: x0, xl (N, C), w (C, 1), b (C).
func CrossVector(x0, xl, w, b *gorgonia.Node) (*gorgonia.Node, error) {
	z, err := Linear(Identity, xl, w, nil)
	if err != nil {
		return nil, err
	}
	if xl.Shape()[1] > 1 {
		return cross(x0, z, xl, b)
	}
	// With a single column, z has the shape of version 2, which allows no bias beside it.
	y, err := cross(x0, z, xl, nil)
	if err != nil {
		return nil, err
	}
	biases, err := Bias(xl.Shape()[0], b)
	if err != nil {
		return nil, err
	}
	return Sum(y, biases)
}

// CrossMatrix returns x0 ⊙ (xl·w + b) + xl: x0, xl (N, C), w (C, C), b (C).
func CrossMatrix(x0, xl, w, b *gorgonia.Node) (*gorgonia.Node, error) {
	z, err := Linear(Identity, xl, w, b)
	if err != nil {
		return nil, err
	}
	return cross(x0, z, xl, nil)
}

// CrossLowRank returns x0 ⊙ ((xl·v)·u + b) + xl: x0, xl (N, C), v (C, R),
// u (R, C), b (C).
func CrossLowRank(x0, xl, v, u, b *gorgonia.Node) (*gorgonia.Node, error) {
	inner, err := Linear(Identity, xl, v, nil)
	if err != nil {
		return nil, err
	}
	z, err := Linear(Identity, inner, u, b)
	if err != nil {
		return nil, err
	}
	return cross(x0, z, xl, nil)
}

type crossOp struct{ base }

func (op *crossOp) Type() hm.Type {
	if op.arity == 3 {
		return matrices(3)
	}
	return hm.NewFnType(floats(2), floats(2), floats(2), floats(1), floats(2))
}

func (op *crossOp) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds[:3])
	if err != nil {
		return nil, err
	}
	x0, z, xl := s[0], s[1], s[2]
	if x0 != xl || z[0] != x0[0] || (z[1] != x0[1] && z[1] != 1) {
		return nil, fmt.Errorf("x0 is %v, z %v, xl %v", x0, z, xl)
	}
	if len(ds) == 4 && (z[1] == x0[1] || !sameShape(shapeOf(ds[3]), []int{x0[1]})) {
		return nil, fmt.Errorf("x0 is %v, z %v, bias %v", x0, z, ds[3])
	}
	return tensor.Shape{x0[0], x0[1]}, nil
}

func (op *crossOp) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x0, n, c := matrix(in[0])
	z, _, cz := matrix(in[1])
	xl, _, _ := matrix(in[2])
	var bias []float32
	if len(in) == 4 {
		bias = dense(in[3]).Float32s()
	}
	y, ydata := op.out(n, c)
	parallel(n, rowGrain(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			x0, xl, out := x0[i*c:(i+1)*c], xl[i*c:(i+1)*c], ydata[i*c:(i+1)*c]
			switch {
			case cz == c:
				z := z[i*c : (i+1)*c]
				for j, v := range x0 {
					out[j] = float32(v*z[j]) + xl[j]
				}
			case bias == nil:
				for j, v := range x0 {
					out[j] = float32(v*z[i]) + xl[j]
				}
			default:
				for j, v := range x0 {
					out[j] = float32(v*z[i]) + bias[j] + xl[j]
				}
			}
		}
	})
	return y, nil
}

func (op *crossOp) DiffWRT(n int) []bool { return differentiable(n, n) }

// SymDiff: dx0 = dy ⊙ z, dz = dy ⊙ x0 (its row sums when z is a column),
// dxl = dy, dbias = column sums of dy.
func (op *crossOp) SymDiff(in gorgonia.Nodes, y, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	return op.diff(nil, in, y, dy)
}

func (op *crossOp) diff(need []bool, in gorgonia.Nodes, _, dy *gorgonia.Node) (grads gorgonia.Nodes, err error) {
	grads = make(gorgonia.Nodes, len(in))
	if needs(need, 0) {
		if grads[0], err = multiply(dy, in[1]); err != nil {
			return nil, err
		}
	}
	if needs(need, 1) {
		if in[1].Shape()[1] == 1 {
			grads[1], err = rowDot(dy, in[0])
		} else {
			grads[1], err = multiply(dy, in[0])
		}
		if err != nil {
			return nil, err
		}
	}
	grads[2] = dy
	if len(in) == 4 && needs(need, 3) {
		if grads[3], err = colSum(dy); err != nil {
			return nil, err
		}
	}
	return grads, nil
}
