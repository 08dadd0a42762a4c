package model

import (
	"cmp"
	"fmt"

	"aibox/trainer/ops"
	"aibox/trainer/optim"
	"aibox/trainer/program"

	"gorgonia.org/gorgonia"
)

// compiled is a graph for one number of examples. It is differentiated if it is for training.
type compiled struct {
	*builder
	logits  *gorgonia.Node
	loss    *gorgonia.Node // training only, as are all below
	labels  *ops.Input
	weights *ops.Input
	rowGrad *gorgonia.Node
	grads   []*gorgonia.Node // of builder.nodes
}

// compile builds the graph of spec over the shared parameters.
func compile(spec Spec, n int, training bool, ps, buffers *params) (*compiled, error) {
	// Gorgonia distinguishes nodes by a hash of 32 bits and silently merges those with equal
	// hashes. Ops get new numbers in every graph, so a collision (in one of ten thousand networks
	// of a thousand nodes) disappears if the graph is built again.
	const attempts = 4
	for range attempts {
		c, err := tryCompile(spec, n, training, ps, buffers)
		if err != nil || distinct(c.graph) {
			return c, err
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
	if b.act, b.err = ops.ParseActivation(cmp.Or(spec.Activation, ops.ReLU.String())); b.err != nil {
		return nil, b.err
	}
	for f := range spec.Fields {
		p, err := spec.poolingOf(f)
		if err != nil {
			return nil, err
		}
		b.pooling = append(b.pooling, p)
	}
	c := &compiled{builder: b}
	c.logits = b.network()
	if b.err == nil && training {
		b.err = c.differentiate()
	}
	if b.err != nil {
		return nil, fmt.Errorf("model: %s: %w", spec.Kind, b.err)
	}
	return c, nil
}

// differentiate adds loss and gradients.
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
	c.rowGrad, c.grads = grads[0], grads[1:]
	return nil
}

func names(ps []*optim.Param) []string {
	all := make([]string, len(ps))
	for i, p := range ps {
		all[i] = p.Name
	}
	return all
}

// lower makes the program of the graph.
func (c *compiled) lower() (*program.Program, error) {
	node := func(in *ops.Input) *gorgonia.Node {
		if in == nil {
			return nil
		}
		return in.Node
	}
	g := &program.Graph{
		Dense: node(c.dense), Rows: c.rows.Node, Step: node(c.step),
		Bags:   []*gorgonia.Node{c.bags.Offsets, c.bags.Index, c.bags.Weights},
		Params: c.nodes, Running: c.running, Logits: c.logits,
	}
	if c.training {
		g.Labels, g.Weights, g.Loss, g.RowGrad, g.Gradients = node(c.labels), node(c.weights), c.loss, c.rowGrad, c.grads
		for _, n := range c.norms {
			g.Stats = append(g.Stats, n.stats)
		}
	}
	return program.Lower(g)
}
