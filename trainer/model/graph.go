package model

import (
	"fmt"

	"aibox/trainer/ops"
	"aibox/trainer/optim"

	"gorgonia.org/gorgonia"
)

// compiled is a graph for one number of examples, differentiated if it is for
// training, and the machine that runs it.
type compiled struct {
	*builder
	logits  *gorgonia.Node
	loss    *gorgonia.Node // training only, as all below
	labels  *ops.Input
	weights *ops.Input
	rowGrad *gorgonia.Node
	copies  []gradCopy

	machine gorgonia.VM
	bytes   int       // memory of the results, except those whose size changes
	ones    []float32 // weights of mini-batches that have none
	used    int64     // for eviction: number of the last run that used the graph
}

// gradCopy is a gradient that its op could not write to the optimizer's memory, so that
// it is copied there.
type gradCopy struct {
	node *gorgonia.Node
	to   []float32
}

// compile builds the graph of spec over the shared parameters.
func compile(spec Spec, n int, training bool, ps, buffers *params) (*compiled, error) {
	// Gorgonia distinguishes nodes by a hash of 32 bits and silently merges those of
	// equal hash. Ops get new numbers in every graph, so a collision (in one of ten
	// thousand networks of a thousand nodes) disappears if the graph is built again.
	const attempts = 4
	for range attempts {
		c, err := tryCompile(spec, n, training, ps, buffers)
		if err != nil {
			return nil, err
		}
		if distinct(c.graph) {
			if c.bytes, err = ops.Share(c.graph, c.read()...); err != nil {
				return nil, err
			}
			c.machine = gorgonia.NewTapeMachine(c.graph)
			return c, nil
		}
	}
	return nil, fmt.Errorf("model: nodes of the graph share a hash after %d attempts", attempts)
}

func distinct(g *gorgonia.ExprGraph) bool {
	seen := map[uint32]bool{}
	for _, n := range g.AllNodes() {
		if seen[n.Hashcode()] {
			return false
		}
		seen[n.Hashcode()] = true
	}
	return true
}

func tryCompile(spec Spec, n int, training bool, ps, buffers *params) (*compiled, error) {
	b := &builder{spec: spec, n: n, training: training, params: ps, buffers: buffers, graph: gorgonia.NewGraph()}
	if spec.Activation == "" {
		b.act = ops.ReLU
	} else if b.act, b.err = ops.ParseActivation(spec.Activation); b.err != nil {
		return nil, b.err
	}
	if spec.Pooling != "" {
		if b.pooling, b.err = ops.ParsePooling(spec.Pooling); b.err != nil {
			return nil, b.err
		}
	}
	c := &compiled{builder: b, ones: make([]float32, n)}
	for i := range c.ones {
		c.ones[i] = 1
	}
	c.logits = b.network()
	if b.err == nil && training {
		b.err = c.differentiate()
	}
	if b.err != nil {
		return nil, fmt.Errorf("model: %s for %d examples: %w", spec.Kind, n, b.err)
	}
	return c, nil
}

// differentiate adds loss and gradients. Gradients of parameters are written
// to Param.Grad by the ops that compute them.
func (c *compiled) differentiate() error {
	var err error
	if c.labels, err = ops.NewInput(c.graph, "labels", gorgonia.Float32, c.n); err != nil {
		return err
	}
	if c.weights, err = ops.NewInput(c.graph, "weights", gorgonia.Float32, c.n); err != nil {
		return err
	}
	if c.loss, err = ops.Loss(c.logits, c.labels.Node, c.weights.Node); err != nil {
		return err
	}
	grads, err := ops.Grad(c.loss, append([]*gorgonia.Node{c.rows.Node}, c.nodes...)...)
	if err != nil {
		return err
	}
	for i, g := range grads {
		if g == nil {
			return fmt.Errorf("the loss does not depend on %s", append([]string{"the rows"}, names(c.builder.used)...)[i])
		}
	}
	c.rowGrad = grads[0]
	for i, p := range c.builder.used {
		if !ops.SetResult(grads[i+1], p.Grad) {
			c.copies = append(c.copies, gradCopy{grads[i+1], p.Grad})
		}
	}
	return nil
}

// read returns the nodes whose values are read after a run.
func (c *compiled) read() []*gorgonia.Node {
	nodes := []*gorgonia.Node{c.logits}
	if c.rowGrad != nil {
		nodes = append(nodes, c.rowGrad)
	}
	for _, cp := range c.copies {
		nodes = append(nodes, cp.node)
	}
	for _, n := range c.norms {
		nodes = append(nodes, n.stats)
	}
	return nodes
}

func names(ps []*optim.Param) []string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = p.Name
	}
	return all
}

// bind gives the graph its inputs, which have been checked.
func (c *compiled) bind(in *Inputs) {
	r := c.spec.RowDim()
	// Gorgonia has no empty tensors. If there are no rows, one row, index and weight
	// that no bag refers to take their place.
	rows, index := in.Rows, in.Index
	if len(rows) == 0 {
		rows = make([]float32, r)
	}
	if len(index) == 0 {
		index = []int32{0}
	}
	bagWeights := in.BagWeights
	if len(bagWeights) == 0 {
		bagWeights = []float32{1}
	}
	c.rows.Set(rows, len(rows)/r, r)
	c.sets.offsets.Set(in.Offsets, len(in.Offsets))
	c.sets.index.Set(index, len(index))
	c.sets.weights.Set(bagWeights, len(bagWeights))
	if c.dense != nil {
		c.dense.Set(in.Dense, c.n, len(c.spec.Dense))
	}
	if !c.training {
		return
	}
	c.labels.Set(in.Labels, c.n)
	if in.Weights != nil {
		c.weights.Set(in.Weights, c.n)
	} else {
		c.weights.Set(c.ones, c.n)
	}
	if c.step != nil {
		c.step.Set([]int64{in.Step}, 1)
	}
}

// run executes the graph over what bind gave it.
func (c *compiled) run() error {
	c.machine.Reset()
	if err := c.machine.RunAll(); err != nil {
		if vm, ok := err.(interface{ Err() error }); ok {
			err = vm.Err() // Gorgonia's wrapper does not unwrap
		}
		return fmt.Errorf("model: %s: %w", c.spec.Kind, err)
	}
	return nil
}
