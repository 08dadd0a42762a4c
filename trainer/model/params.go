package model

import (
	"hash/fnv"
	"math"

	"aibox/internal/splitmix"
	"aibox/trainer/optim"

	"gorgonia.org/tensor"
)

// params has the values that graphs share, in the order in which the first graph declared them.
type params struct {
	seed    uint64
	outline bool // parameters have only shapes
	list    []*optim.Param
	byName  map[string]*optim.Param
	tensors map[string]*tensor.Dense // over Param.Data; none in an outline
	axes    map[string][][]string    // see Model.Axes
}

func newParams(seed uint64) *params {
	return &params{seed: seed, byName: map[string]*optim.Param{}, tensors: map[string]*tensor.Dense{}, axes: map[string][][]string{}}
}

// declare returns the parameter with the given name, made with init at the first call, and a tensor
// of its values, nil in an outline.
func (ps *params) declare(name string, shape []int, init initializer) (*optim.Param, *tensor.Dense) {
	if p := ps.byName[name]; p != nil {
		return p, ps.tensors[name]
	}
	p := &optim.Param{Name: name, Shape: shape}
	ps.list = append(ps.list, p)
	ps.byName[name] = p
	if ps.outline {
		return p, nil
	}
	p.Data, p.Grad = make([]float32, p.Size()), make([]float32, p.Size())
	init(ps.seed, name, p.Data)
	ps.tensors[name] = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(p.Data))
	return p, ps.tensors[name]
}

// initializer fills a parameter with its initial values.
type initializer func(seed uint64, name string, data []float32)

// constant fills with one value.
func constant(v float32) initializer {
	return func(_ uint64, _ string, data []float32) {
		for i := range data {
			data[i] = v
		}
	}
}

// uniform draws from [-1, 1)/√fanIn.
func uniform(fanIn int) initializer {
	bound := float32(1 / math.Sqrt(float64(fanIn)))
	return func(seed uint64, name string, data []float32) {
		h := fnv.New64a()
		h.Write([]byte(name))
		stream := splitmix.Next(splitmix.Next(seed) ^ h.Sum64())
		for i := range data {
			// 24 bits make an exact float32 in [-1, 1).
			u := int32(splitmix.Next(stream+uint64(i))>>40) - 1<<23
			data[i] = float32(u) / (1 << 23) * bound
		}
	}
}

// declareStats returns the running mean and variance of c columns, named name/running_mean and
// name/running_variance, and the (2, c) matrix of both.
func (ps *params) declareStats(name string, c int) ([2]*optim.Param, *tensor.Dense) {
	mean, variance := name+"/running_mean", name+"/running_variance"
	if p := ps.byName[mean]; p != nil {
		return [2]*optim.Param{p, ps.byName[variance]}, ps.tensors[name]
	}
	data := make([]float32, 2*c)
	constant(1)(0, "", data[c:])
	pair := [2]*optim.Param{
		{Name: mean, Shape: []int{c}, Data: data[:c:c]},
		{Name: variance, Shape: []int{c}, Data: data[c:]},
	}
	ps.list = append(ps.list, pair[0], pair[1])
	ps.byName[mean], ps.byName[variance] = pair[0], pair[1]
	ps.tensors[name] = tensor.New(tensor.WithShape(2, c), tensor.WithBacking(data))
	return pair, ps.tensors[name]
}
