package ops

import (
	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// RowSum returns the sums (N, 1) of the rows of x (N, C): the first-order part
// of a linear model when x holds every field's pooled weight.
func RowSum(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&rowsum{base: newBase(1, "row-sum")}, x)
}

type rowsum struct{ base }

func (op *rowsum) Type() hm.Type { return matrices(1) }

func (op *rowsum) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s[0][0], 1}, nil
}

func (op *rowsum) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(n, 1)
	parallel(n, rowGrain(c), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			ydata[i] = kernel.Sum(x[i*c : (i+1)*c])
		}
	})
	return y, nil
}

func (op *rowsum) DiffWRT(int) []bool { return []bool{true} }

func (op *rowsum) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := apply(&repeat{base: newBase(1, "repeat"), cols: in[0].Shape()[1]}, dy)
	return gorgonia.Nodes{dx}, err
}

// repeat is the derivative of rowsum: (N, 1) to (N, cols).
type repeat struct {
	base
	cols int
}

func (op *repeat) Type() hm.Type { return matrices(1) }

func (op *repeat) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{s[0][0], op.cols}, nil
}

func (op *repeat) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	dy, n, _ := matrix(in[0])
	dx, ddata := op.out(n, op.cols)
	parallel(n, rowGrain(op.cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := ddata[i*op.cols : (i+1)*op.cols]
			for j := range row {
				row[j] = dy[i]
			}
		}
	})
	return dx, nil
}
