package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elementGrain is the smallest number of elements that are worth another thread: at a few elements
// per nanosecond, their work takes as long as starting one.
const elementGrain = 1 << 14

// rowGrain is elementGrain as a number of rows with the given number of columns.
func rowGrain(cols int) int { return max(1, elementGrain/max(1, cols)) }

// parallel runs fn over parts of [0, n). fn must compute each element in a way
// that does not depend on the parts.
func parallel(n, grain int, fn func(lo, hi int)) { kernel.Parallel(n, grain, fn) }

// needs reports whether the gradient of operand i is wanted; if need is nil, all are.
func needs(need []bool, i int) bool { return need == nil || need[i] }

// Sum returns the element-wise sum of at least two nodes of one shape (vectors or matrices), added
// from first to last.
func Sum(terms ...*gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&sum{base: newBase(len(terms), "sum"), dims: terms[0].Dims()}, terms...)
}

type sum struct {
	base
	dims int
}

func (op *sum) Type() hm.Type {
	types := make([]hm.Type, op.arity+1)
	for i := range types {
		types[i] = floats(op.dims)
	}
	return hm.NewFnType(types...)
}

func (op *sum) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	first := shapeOf(ds[0])
	for i, d := range ds {
		if !first.Eq(shapeOf(d)) {
			return nil, fmt.Errorf("term %d is %v, the first is %v", i, d, first)
		}
	}
	return first.Clone(), nil
}

func (op *sum) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	first := dense(in[0]).Float32s()
	y, ydata := op.out(in[0].Shape()...)
	terms := make([][]float32, len(in))
	for i, v := range in {
		terms[i] = dense(v).Float32s()
	}
	parallel(len(first), elementGrain, func(lo, hi int) {
		copy(ydata[lo:hi], first[lo:hi])
		for _, t := range terms[1:] {
			kernel.Add(ydata[lo:hi], t[lo:hi])
		}
	})
	return y, nil
}

func (op *sum) DiffWRT(n int) []bool { return differentiable(n, n) }

func (op *sum) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	grads := make(gorgonia.Nodes, len(in))
	for i := range grads {
		grads[i] = dy
	}
	return grads, nil
}

// multiply returns x*y element by element for matrices of one shape. If y is (N, 1), it multiplies
// the rows of x. It appears in derivatives.
func multiply(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&product{base: newBase(2, "multiply")}, x, y)
}

type product struct{ base }

func (op *product) Type() hm.Type { return matrices(2) }

func (op *product) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	if s[0][0] != s[1][0] || (s[1][1] != s[0][1] && s[1][1] != 1) {
		return nil, fmt.Errorf("x is %v, y is %v", s[0], s[1])
	}
	return tensor.Shape{s[0][0], s[0][1]}, nil
}

func (op *product) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, _, cy := matrix(in[1])
	z, zdata := op.out(n, c)
	parallel(n, rowGrain(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			zr, xr := zdata[i*c:(i+1)*c], x[i*c:(i+1)*c]
			if cy == c {
				yr := y[i*c : (i+1)*c]
				for j, v := range xr {
					zr[j] = v * yr[j]
				}
			} else {
				s := y[i]
				for j, v := range xr {
					zr[j] = v * s
				}
			}
		}
	})
	return z, nil
}

// rowDot returns the dot products (N, 1) of the rows of x and y, both (N, C).
// It appears in derivatives.
func rowDot(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&rowdot{base: newBase(2, "row-dot")}, x, y)
}

type rowdot struct{ base }

func (op *rowdot) Type() hm.Type { return matrices(2) }

func (op *rowdot) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := sameMatrices(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s[0], 1}, nil
}

func (op *rowdot) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, _, _ := matrix(in[1])
	z, zdata := op.out(n, 1)
	parallel(n, rowGrain(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			zdata[i] = kernel.Dot(x[i*c:(i+1)*c], y[i*c:(i+1)*c])
		}
	})
	return z, nil
}
