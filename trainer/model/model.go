package model

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aibox/internal/errkind"
	"aibox/trainer/ops"
	"aibox/trainer/optim"
)

// ErrNotFinite says that the loss, a logit, a batch statistic or an updated parameter or
// row is NaN or infinite.
var ErrNotFinite = errkind.New(errkind.Diverged, "model: not a finite number")

// normMomentum is the share of a mini-batch in the running statistics of batch
// normalization; PyTorch's default.
const normMomentum = 0.1

// graphsKept is how many graphs a model keeps at most: one for full mini-batches and one
// for the last of an epoch, in training and in inference, and as many again for an
// evaluation set of another size. The least recently used graph is dropped.
const graphsKept = 8

// Model is a network with its parameters. See the package comment for
// concurrency.
type Model struct {
	spec    Spec
	params  *params
	buffers *params
	layers  []Layer
	graphs  map[graphKey]*compiled
	runs    int64
}

type graphKey struct {
	n        int
	training bool
}

// New makes the model that spec describes, with initial values.
func New(spec Spec) (*Model, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	m := &Model{
		spec:    spec,
		params:  newParams(spec.Seed),
		buffers: newParams(spec.Seed),
		graphs:  map[graphKey]*compiled{},
	}
	// A graph for one example declares parameters in their order and reports
	// what Validate cannot see.
	c, err := compile(spec, 1, true, m.params, m.buffers)
	if err != nil {
		return nil, err
	}
	m.layers = c.layers
	return m, nil
}

// Spec is what the model was made from.
func (m *Model) Spec() Spec { return m.spec }

// Params returns the trained dense parameters, in an order that depends on the
// spec alone. Values may be written between calls (Data is shared with the
// graphs and must stay the same memory). Train fills Grad.
func (m *Model) Params() []*optim.Param { return slices.Clone(m.params.list) }

// Buffers returns what is part of the model but not trained by gradients: the
// running statistics of batch normalization. Grad is nil.
func (m *Model) Buffers() []*optim.Param { return slices.Clone(m.buffers.list) }

// Layers returns the steps of the network in order of execution.
func (m *Model) Layers() []Layer { return slices.Clone(m.layers) }

// Describe returns a table of the layers with columns and parameter counts.
func (m *Model) Describe() string { return describe(m.layers) }

// Graph returns the differentiated graph for mini-batches of n examples, for
// executors other than this package's; ops.Children gives a node's operands.
// The values of its inner nodes lie in shared memory (ops.Share): an executor
// reads the graph's shape and brings memory of its own.
func (m *Model) Graph(n int) (*gorgonia.ExprGraph, error) {
	c, err := m.compiled(n, true)
	if err != nil {
		return nil, err
	}
	return c.graph, nil
}

// GraphBytes is the memory of the results in the graph for mini-batches of n examples,
// except those whose size changes.
func (m *Model) GraphBytes(n int, training bool) (int64, error) {
	c, err := compile(m.spec, n, training, m.params, m.buffers)
	if err != nil {
		return 0, err
	}
	return int64(c.bytes), nil
}

// MemoryBytes is the memory of the results in the graphs that m keeps, except those
// whose size changes.
func (m *Model) MemoryBytes() int64 {
	n := int64(0)
	for _, c := range m.graphs {
		n += int64(c.bytes)
	}
	return n
}

// Result is the result of Train. Its slices are valid until the next call of the model.
type Result struct {
	Loss     float64   // mean over the examples of weight times negative log-likelihood
	Logits   []float32 // (N), of this mini-batch before the update
	RowGrads []float32 // (U, RowDim), gradients of the loss
}

// Train runs the network forward and backward over a mini-batch, fills every
// parameter's Grad, overwriting what was there, and updates Buffers. It does
// not change parameters. The error wraps ErrNotFinite when the loss or a batch
// statistic is NaN or infinite; then Buffers are as they were.
func (m *Model) Train(in *Inputs) (Result, error) {
	if err := in.check(m.spec, true); err != nil {
		return Result{}, err
	}
	c, err := m.compiled(in.N, true)
	if err != nil {
		return Result{}, err
	}
	c.bind(in)
	if err := c.run(); err != nil {
		return Result{}, err
	}
	loss := ops.LossValue(c.loss)
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return Result{}, fmt.Errorf("%w: the loss of step %d is %g; %s", ErrNotFinite, in.Step, loss,
			"lower the learning rate, or look for extreme dense features")
	}
	for _, n := range c.norms {
		if err := n.check(); err != nil {
			return Result{}, err
		}
	}
	for _, cp := range c.copies {
		copy(cp.to, floats(cp.node))
	}
	for _, n := range c.norms {
		n.update(c.n)
	}
	u := len(in.Rows)
	return Result{Loss: loss, Logits: floats(c.logits), RowGrads: floats(c.rowGrad)[:u]}, nil
}

// Infer returns the logits (N) of a mini-batch: no dropout, running statistics
// in batch normalization, no labels needed. The slice is valid until the next
// call of the model. The error wraps ErrNotFinite when a logit is NaN or
// infinite.
func (m *Model) Infer(in *Inputs) ([]float32, error) {
	if err := in.check(m.spec, false); err != nil {
		return nil, err
	}
	c, err := m.compiled(in.N, false)
	if err != nil {
		return nil, err
	}
	c.bind(in)
	if err := c.run(); err != nil {
		return nil, err
	}
	logits := floats(c.logits)
	for i, z := range logits {
		if math.IsNaN(float64(z)) || math.IsInf(float64(z), 0) {
			return nil, fmt.Errorf("%w: the logit of example %d of the mini-batch is %g", ErrNotFinite, i, z)
		}
	}
	return logits, nil
}

// compiled returns the graph for n examples, building it if need be.
func (m *Model) compiled(n int, training bool) (*compiled, error) {
	m.runs++
	key := graphKey{n, training}
	if c := m.graphs[key]; c != nil {
		c.used = m.runs
		return c, nil
	}
	c, err := compile(m.spec, n, training, m.params, m.buffers)
	if err != nil {
		return nil, err
	}
	if len(m.graphs) >= graphsKept {
		var oldest graphKey
		for k, g := range m.graphs {
			if o := m.graphs[oldest]; o == nil || g.used < o.used {
				oldest = k
			}
		}
		delete(m.graphs, oldest)
	}
	c.used = m.runs
	m.graphs[key] = c
	return c, nil
}

// floats returns a node's last value.
func floats(node *gorgonia.Node) []float32 {
	return node.Value().(*tensor.Dense).Float32s()
}

// check reports batch statistics that are not finite and would spoil the running ones
// permanently. A huge value can pass through a normalization and give a finite loss.
func (n norm) check() error {
	for _, v := range floats(n.stats) {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("%w: the batch statistics for %s and %s", ErrNotFinite, n.mean.Name, n.variance.Name)
		}
	}
	return nil
}

// update moves the running statistics towards those of the last run, over n
// examples. As in PyTorch the running variance is the unbiased one; a single
// example has none and leaves it alone.
func (n norm) update(examples int) {
	batch := floats(n.stats)
	c := len(n.mean.Data)
	for j, v := range batch[:c] {
		n.mean.Data[j] += float32(normMomentum * (v - n.mean.Data[j]))
	}
	if examples < 2 {
		return
	}
	unbiased := float32(float64(examples) / float64(examples-1))
	for j, v := range batch[c:] {
		n.variance.Data[j] += float32(normMomentum * (float32(v*unbiased) - n.variance.Data[j]))
	}
}
