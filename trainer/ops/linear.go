package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Linear returns a(x·w + b), a fully connected layer: x (N, I), w (I, O),
// b (O) or nil, result (N, O).
//
// Its derivative, with dz = dy * a'(z): dx = dz·wᵀ, dw = xᵀ·dz, and db the column sums of dz.
func Linear(a Activation, x, w, b *gorgonia.Node) (*gorgonia.Node, error) {
	if b == nil {
		return apply(&linear{base: newBase(2, "linear(%v, no bias)", a), act: a}, x, w)
	}
	return apply(&linear{base: newBase(3, "linear(%v)", a), act: a}, x, w, b)
}

type linear struct {
	base
	act Activation
}

func (op *linear) Type() hm.Type {
	if op.arity == 2 {
		return matrices(2)
	}
	return hm.NewFnType(floats(2), floats(2), floats(1), floats(2))
}

func (op *linear) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds[:2])
	if err != nil {
		return nil, err
	}
	x, w := s[0], s[1]
	if x[1] != w[0] {
		return nil, fmt.Errorf("x is %v, w is %v", x, w)
	}
	if len(ds) == 3 && !sameShape(shapeOf(ds[2]), []int{w[1]}) {
		return nil, fmt.Errorf("w is %v, b is %v", w, ds[2])
	}
	return tensor.Shape{x[0], w[1]}, nil
}

func (op *linear) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, k := matrix(in[0])
	w, _, o := matrix(in[1])
	y, ydata := op.out(n, o)
	multiplyMatrices(k, o, false, false, n, o, k, x, k, w, o, ydata)
	var bias []float32
	if len(in) == 3 {
		bias = dense(in[2]).Float32s()
	}
	if bias == nil && op.act == Identity {
		return y, nil
	}
	parallel(n, rowGrain(o), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := ydata[i*o : (i+1)*o]
			if bias != nil {
				kernel.Add(row, bias)
			}
			op.act.Apply(row)
		}
	})
	return y, nil
}

func (op *linear) DiffWRT(int) []bool { return differentiable(op.arity, op.arity) }

func (op *linear) SymDiff(in gorgonia.Nodes, y, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	return op.diff(nil, in, y, dy)
}

func (op *linear) diff(need []bool, in gorgonia.Nodes, y, dy *gorgonia.Node) (grads gorgonia.Nodes, err error) {
	grads = make(gorgonia.Nodes, len(in))
	dz, err := activationGrad(op.act, y, dy)
	if err != nil {
		return nil, err
	}
	if needs(need, 0) {
		if grads[0], err = matMul(false, true, dz, in[1]); err != nil {
			return nil, err
		}
	}
	if needs(need, 1) {
		if grads[1], err = matMul(true, false, in[0], dz); err != nil {
			return nil, err
		}
	}
	if len(in) == 3 && needs(need, 2) {
		if grads[2], err = colSum(dz); err != nil {
			return nil, err
		}
	}
	return grads, nil
}
