package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aibox/trainer/ops"
	"aibox/trainer/optim"
)

// builder makes one graph of a model, for n examples, for training or for inference. It keeps the
// first error, after which every method does nothing.
type builder struct {
	spec     Spec
	act      ops.Activation
	pooling  []ops.Pooling // of each field
	n        int
	training bool

	params  *params
	buffers *params
	graph   *gorgonia.ExprGraph
	err     error

	inputs
	declared
}

// inputs are the nodes of a graph whose values come from a mini-batch.
type inputs struct {
	dense *ops.Input // nil without dense features
	rows  *ops.Input
	bags  ops.Bags
	sets  struct{ offsets, index, weights *ops.Input }
	step  *ops.Input
}

// declared is what a graph has declared so far.
type declared struct {
	nodes    []*gorgonia.Node // of params used, in order of declaration
	used     []*optim.Param
	norms    []norm           // in training
	running  []*gorgonia.Node // in inference: the running statistics of each normalization
	dropouts int
	names    map[*gorgonia.Node][]string // see namesOf
}

// norm is one batch normalization: its batch statistics, and the running statistics that they
// update.
type norm struct {
	stats          *gorgonia.Node
	mean, variance *optim.Param
	both           []float32 // mean and variance, (2, C)
}

// check keeps err if it is the first one, and returns node.
func (b *builder) check(node *gorgonia.Node, err error) *gorgonia.Node {
	if b.err == nil {
		b.err = err
	}
	return node
}

// input adds an input whose shape may change.
func (b *builder) input(name string, of tensor.Dtype, shape ...int) *ops.Input {
	if b.err != nil {
		return nil
	}
	in, err := ops.NewInput(b.graph, name, of, shape...)
	if err != nil {
		b.err = fmt.Errorf("model: input %s: %w", name, err)
	}
	return in
}

// mostValues is the largest number of values that a parameter may have. They take 4 TiB, more than
// any machine has, and sums of bytes over all parameters do not overflow.
const mostValues = 1 << 40

func checkSize(name string, shape []int) error {
	size := 1.0
	for _, n := range shape {
		size *= float64(n)
	}
	if size > mostValues {
		return fmt.Errorf("the parameter %s of shape %v has more than %d values; take fewer columns, a smaller embedding_dim, or narrower layers", name, shape, mostValues)
	}
	return nil
}

// param returns the node of a trained parameter.
func (b *builder) param(name string, init initializer, shape ...int) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	if b.err = checkSize(name, shape); b.err != nil {
		return nil
	}
	p, value := b.params.declare(name, shape, init)
	node := gorgonia.NewTensor(b.graph, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	if value != nil {
		if b.err = gorgonia.Let(node, value); b.err != nil {
			return nil
		}
	}
	b.nodes, b.used = append(b.nodes, node), append(b.used, p)
	return node
}

// layer names the columns of a layer's result, if they have no names yet.
func (b *builder) layer(name string, node *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.name(node, b.namesOf(node, name))
}

// pooled adds the inputs of the rows and bags and returns the pooled rows,
// (N, F*RowDim).
func (b *builder) pooled() *gorgonia.Node {
	f, r := len(b.spec.Fields), b.spec.RowDim()
	b.rows = b.input("rows", tensor.Float32, 1, r)
	b.sets.offsets = b.input("bags/offsets", tensor.Int32, b.n*f+1)
	b.sets.index = b.input("bags/index", tensor.Int32, 1)
	b.sets.weights = b.input("bags/weights", tensor.Float32, 1)
	if b.err != nil {
		return nil
	}
	b.bags = ops.Bags{Offsets: b.sets.offsets.Node, Index: b.sets.index.Node, Weights: b.sets.weights.Node}
	node := b.name(b.check(ops.BagPool(b.pooling, b.rows.Node, b.bags)), b.spec.pooledNames())
	return b.layer("pooling", node)
}

// densePart returns the dense features, nil when there are none.
func (b *builder) densePart() *gorgonia.Node {
	if len(b.spec.Dense) == 0 || b.err != nil {
		return nil
	}
	if b.dense == nil {
		if b.dense = b.input("dense", tensor.Float32, b.n, len(b.spec.Dense)); b.err != nil {
			return nil
		}
		b.name(b.dense.Node, b.spec.denseNames())
	}
	return b.dense.Node
}

// columns keeps the columns [lo, hi) of every group of period columns.
func (b *builder) columns(period, lo, hi int, x *gorgonia.Node) *gorgonia.Node {
	if b.err != nil || lo == 0 && hi == period {
		return x
	}
	var kept []string
	for i, name := range b.namesOf(x, "x") {
		if i%period >= lo && i%period < hi {
			kept = append(kept, name)
		}
	}
	return b.name(b.check(ops.Columns(period, lo, hi, x)), kept)
}

// present returns the parts that are not nil.
func present(parts []*gorgonia.Node) []*gorgonia.Node {
	return slices.DeleteFunc(slices.Clone(parts), func(p *gorgonia.Node) bool { return p == nil })
}

// concat joins the parts that are not nil.
func (b *builder) concat(parts ...*gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	parts = present(parts)
	var names []string
	for i, p := range parts {
		names = append(names, b.namesOf(p, fmt.Sprintf("part%d", i))...)
	}
	return b.name(b.check(ops.Concat(parts...)), names)
}

// add sums the parts that are not nil.
func (b *builder) add(parts ...*gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	parts = present(parts)
	if len(parts) == 1 {
		return parts[0]
	}
	return b.check(ops.Sum(parts...))
}

// linear is one fully connected layer.
func (b *builder) linear(name string, act ops.Activation, units int, bias bool, x *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	fanIn := x.Shape()[1]
	w := b.param(name+"/weight", uniform(fanIn), fanIn, units)
	var beta *gorgonia.Node
	if bias {
		beta = b.param(name+"/bias", uniform(fanIn), units)
	}
	if b.err != nil {
		return nil
	}
	b.axes(name+"/weight", b.namesOf(x, "x"), nil)
	return b.layer(name, b.check(ops.Linear(act, x, w, beta)))
}

// output is the last layer, to one logit.
func (b *builder) output(x *gorgonia.Node) *gorgonia.Node {
	return b.linear("output", ops.Identity, 1, true, x)
}

// mlp adds hidden layers name/0, name/1, … and returns the results of the first and of the last
// one.
func (b *builder) mlp(name string, sizes []int, dropout bool, x *gorgonia.Node) (first, last *gorgonia.Node) {
	last = x
	for i, units := range sizes {
		if b.err != nil {
			return nil, nil
		}
		last = b.hidden(fmt.Sprintf("%s/%d", name, i), units, dropout, last)
		if i == 0 {
			first = last
		}
	}
	return first, last
}

func (b *builder) hidden(name string, units int, dropout bool, x *gorgonia.Node) *gorgonia.Node {
	if !b.spec.BatchNorm {
		x = b.linear(name, b.act, units, true, x)
	} else {
		x = b.linear(name, ops.Identity, units, false, x)
		x = b.batchNorm(name+"/norm", x)
		if b.err == nil {
			x = b.check(ops.Activate(b.act, x))
		}
	}
	if !dropout || b.spec.Dropout == 0 || b.err != nil {
		return b.name(x, positions(name, units))
	}
	b.dropouts++
	if b.training {
		if b.step == nil {
			if b.step = b.input("step", tensor.Int64, 1); b.err != nil {
				return nil
			}
		}
		x = b.check(ops.Dropout(b.spec.Dropout, b.spec.Seed, b.dropouts, x, b.step.Node))
	}
	return b.name(x, positions(name, units))
}

func (b *builder) batchNorm(name string, x *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	c := x.Shape()[1]
	gamma := b.param(name+"/gamma", constant(1), c)
	beta := b.param(name+"/beta", constant(0), c)
	// The running mean and variance are adjacent in memory, so together they are the (2, C) matrix
	// that inference reads.
	both, value := b.buffers.declareStats(name, c)
	if b.err != nil {
		return nil
	}
	var stats *gorgonia.Node
	if b.training {
		if stats = b.check(ops.BatchStats(x)); b.err != nil {
			return nil
		}
		b.norms = append(b.norms, norm{stats: stats, mean: both[0], variance: both[1], both: value.Float32s()})
	} else {
		stats = gorgonia.NewTensor(b.graph, tensor.Float32, 2, gorgonia.WithShape(2, c), gorgonia.WithName(name+"/running"))
		if b.err = gorgonia.Let(stats, value); b.err != nil {
			return nil
		}
		b.running = append(b.running, stats)
	}
	return b.layer(name, b.check(ops.BatchNorm(x, gamma, beta, stats)))
}
