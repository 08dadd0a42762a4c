package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Interact returns the dot products of all pairs of the F vectors of each example, as DLRM does. x
// is (N, F*D), and dim is D. The result is (N, F*(F-1)/2) in the order of the strict lower
// triangle: (1,0), (2,0), (2,1), (3,0), …
//
// Its derivative adds to each vector the other vectors times the gradients of
// their pairs.
func Interact(dim int, x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&interact{base: newBase(1, "interact"), dim: dim}, x)
}

// pairs returns the number of pairs of f vectors.
func pairs(f int) int { return f * (f - 1) / 2 }

type interact struct {
	base
	dim int
}

func (op *interact) Type() hm.Type { return matrices(1) }

func (op *interact) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	if s[0][1]%op.dim != 0 || s[0][1] < 2*op.dim {
		return nil, fmt.Errorf("x is %v: want at least two vectors of %d", s[0], op.dim)
	}
	return tensor.Shape{s[0][0], pairs(s[0][1] / op.dim)}, nil
}

// Do multiplies each example's vectors, as a matrix (F, D), by their own transpose and keeps the
// lower triangle. That is twice the work, but many times faster than pair by pair, because it is a
// matrix product.
func (op *interact) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	d := op.dim
	f := c / d
	p := pairs(f)
	y, ydata := op.out(n, p)
	parallel(n, rowGrain(p*d), func(lo, hi int) {
		gram := make([]float32, f*f)
		for i := lo; i < hi; i++ {
			vectors, out := x[i*c:(i+1)*c], ydata[i*p:(i+1)*p]
			kernel.Gemm(false, true, f, f, d, vectors, d, vectors, d, false, gram, f)
			for v := 1; v < f; v++ {
				copy(out[pairs(v):][:v], gram[v*f:])
			}
		}
	})
	return y, nil
}

func (op *interact) DiffWRT(int) []bool { return []bool{true} }

func (op *interact) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := apply(&interactGrad{base: newBase(2, "interact-grad"), dim: op.dim}, in[0], dy)
	return gorgonia.Nodes{dx}, err
}

// interactGrad computes, for vector v of each example, Σ_w dy(v,w)·w over all vectors w in
// ascending order, where dy(v,v) is zero. x is (N, F*D), dy (N, F*(F-1)/2), the result (N, F*D).
type interactGrad struct {
	base
	dim int
}

func (op *interactGrad) Type() hm.Type { return matrices(2) }

func (op *interactGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return shapeOf(ds[0]).Clone(), nil
}

func (op *interactGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	dy, _, p := matrix(in[1])
	d := op.dim
	f := c / d
	dx, ddata := op.out(n, c)
	parallel(n, rowGrain(p*d), func(lo, hi int) {
		square := make([]float32, f*f) // symmetric, zeros on the diagonal
		for i := lo; i < hi; i++ {
			vectors, grad, out := x[i*c:(i+1)*c], dy[i*p:(i+1)*p], ddata[i*c:(i+1)*c]
			for v, at := 1, 0; v < f; v++ {
				for w := range v {
					square[v*f+w], square[w*f+v] = grad[at], grad[at]
					at++
				}
			}
			kernel.Gemm(false, false, f, d, f, square, f, vectors, d, false, out, d)
		}
	})
	return dx, nil
}
