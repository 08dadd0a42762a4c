package ops

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Input is an input node whose value may have a different shape at every run.
//
// gorgonia.Let accepts only the shape with which the node was made. Input binds one
// tensor once and then replaces the contents and the shape of that tensor.
type Input struct {
	Node  *gorgonia.Node
	value *tensor.Dense
}

// NewInput adds an input of the given element type and nominal shape to g.
func NewInput(g *gorgonia.ExprGraph, name string, of tensor.Dtype, shape ...int) (*Input, error) {
	value := tensor.New(tensor.Of(of), tensor.WithShape(shape...))
	node := gorgonia.NewTensor(g, of, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	if err := gorgonia.Let(node, value); err != nil {
		return nil, err
	}
	return &Input{Node: node, value: value}, nil
}

// Set makes backing, a slice of the input's element type, the value of the input, with the given
// shape. It does not copy backing, which must not be empty: Gorgonia has no tensors without
// elements.
func (in *Input) Set(backing any, shape ...int) {
	*in.value = *tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing))
}
