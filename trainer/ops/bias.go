package ops

import (
	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Bias returns b (1) repeated for n examples, (N, 1): the constant part of a
// linear model without dense features.
func Bias(n int, b *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&bias{base: newBase(1, "bias"), n: n}, b)
}

type bias struct {
	base
	n int
}

func (op *bias) Type() hm.Type { return hm.NewFnType(floats(1), floats(2)) }

func (op *bias) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.Shape{op.n, 1}, nil
}

func (op *bias) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	b := dense(in[0]).Float32s()[0]
	y, ydata := op.out(op.n, 1)
	for i := range ydata {
		ydata[i] = b
	}
	return y, nil
}

func (op *bias) DiffWRT(int) []bool { return []bool{true} }

func (op *bias) SymDiff(_ gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	db, err := colSum(dy)
	return gorgonia.Nodes{db}, err
}
