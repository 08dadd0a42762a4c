package program

import (
	"fmt"
	"slices"

	"aibox/trainer/ops"

	"gorgonia.org/gorgonia"
)

// Graph is a model's graph with the nodes that an engine has to know. Nodes that a model lacks are
// nil.
type Graph struct {
	Dense, Labels, Weights, Rows, Step *gorgonia.Node   // inputs
	Bags                               []*gorgonia.Node // inputs: offsets, index, weights
	Params                             []*gorgonia.Node
	Running                            []*gorgonia.Node // inputs: running statistics, in inference

	Logits    *gorgonia.Node
	Loss      *gorgonia.Node // training only, as are all below
	RowGrad   *gorgonia.Node
	Gradients []*gorgonia.Node // of Params
	Stats     []*gorgonia.Node
}

// Lower turns a graph into a program.
func Lower(g *Graph) (*Program, error) {
	l := &lowering{graph: g, of: map[*gorgonia.Node]Value{}}
	l.inputs()
	for _, node := range l.nodes() {
		if err := l.node(node); err != nil {
			return nil, fmt.Errorf("program: %v: %w", node, err)
		}
	}
	l.outputs()
	l.fuseBiases()
	l.fuseDerivatives()
	l.schedule()
	l.settle()
	l.plan()
	return &l.Program, nil
}

// lowering is a program under construction.
type lowering struct {
	Program
	graph *Graph
	of    map[*gorgonia.Node]Value

	// parents has, for each buffer that was moved into a concatenation, the value that replaces it.
	parents map[int]Value
}

// buffer adds a buffer and returns all of it as a value.
func (l *lowering) buffer(b Buffer) Value {
	l.Buffers = append(l.Buffers, b)
	return Value{Buffer: len(l.Buffers) - 1, Columns: b.Columns}
}

// inputs adds the buffers that the executor does not compute.
func (l *lowering) inputs() {
	g := l.graph
	input := func(node *gorgonia.Node, source Source, index int) {
		if node == nil {
			return
		}
		b := Buffer{Source: source, Index: index}
		b.Count, b.Columns = shape(node)
		switch source {
		case Dense, Labels, Weights:
			b.Rows = Examples
			if source != Dense {
				b.Columns = 1
			}
		case TableRows:
			b.Rows = Unique
		default:
			b.Rows = Fixed
		}
		l.of[node] = l.buffer(b)
	}
	input(g.Dense, Dense, 0)
	input(g.Labels, Labels, 0)
	input(g.Weights, Weights, 0)
	input(g.Rows, TableRows, 0)
	input(g.Step, Clock, 0)
	for _, n := range g.Bags {
		input(n, Bags, 0)
	}
	for i, n := range g.Params {
		input(n, Param, i)
	}
	for i, n := range g.Running {
		input(n, Running, i)
	}
}

// shape returns a node's shape as a matrix; a vector is one row.
func shape(node *gorgonia.Node) (rows, columns int) {
	s := node.Shape()
	switch len(s) {
	case 0:
		return 1, 1
	case 1:
		return 1, s[0]
	}
	return s[0], s[1]
}

// nodes returns the nodes that the outputs depend on, operands first.
func (l *lowering) nodes() []*gorgonia.Node {
	g := l.graph
	var nodes []*gorgonia.Node
	seen := map[*gorgonia.Node]bool{}
	var visit func(n *gorgonia.Node)
	visit = func(n *gorgonia.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		nodes = append(nodes, n)
		for _, c := range ops.Children(n) {
			visit(c)
		}
	}
	for _, n := range slices.Concat([]*gorgonia.Node{g.Logits, g.Loss, g.RowGrad}, g.Gradients, g.Stats) {
		visit(n)
	}
	// An op is added to the graph after its operands and gets a larger number.
	slices.SortFunc(nodes, func(a, b *gorgonia.Node) int { return int(a.ID() - b.ID()) })
	return nodes
}

// node adds the steps that compute a node.
func (l *lowering) node(n *gorgonia.Node) error {
	if _, ok := l.of[n]; ok {
		return nil // an input
	}
	a, ok := ops.Describe(n)
	if !ok {
		if n.Op() == nil || n.IsScalar() { // the constant 1
			l.of[n] = l.buffer(Buffer{Source: One, Rows: Fixed, Count: 1, Columns: 1})
			return nil
		}
		return fmt.Errorf("%v is not an op of package ops", n.Op())
	}
	s := Step{Attributes: a}
	for _, c := range ops.Children(n) {
		s.In = append(s.In, l.of[c])
	}
	switch a.Kind {
	case ops.KindColumns:
		if x := s.In[0]; x.Columns == a.Period {
			l.of[n] = Value{x.Buffer, x.Column + a.Lo, a.Hi - a.Lo}
			return nil
		}
	case ops.KindConcat:
		l.of[n] = l.concat(n, s.In)
		return nil
	}
	out := Buffer{Rows: l.rows(&s)}
	out.Count, out.Columns = shape(n)
	if a.Kind == ops.KindLoss {
		out.Rows = Examples // the terms; the executor sums them
	}
	s.Out = []Value{l.buffer(out)}
	l.of[n] = s.Out[0]
	l.Steps = append(l.Steps, s)
	return nil
}

// rows returns what the rows of a step's result belong to.
func (l *lowering) rows(s *Step) Rows {
	switch {
	case s.Kind == ops.KindBagPoolGrad:
		return Unique
	case !rowWise(s):
		return Fixed
	case s.Kind == ops.KindSum:
		return l.Buffers[s.In[0].Buffer].Rows
	}
	return Examples
}

// concat joins parts. A part that is the whole buffer of a step is moved into the concatenation;
// all others are copied.
func (l *lowering) concat(n *gorgonia.Node, parts []Value) Value {
	_, columns := shape(n)
	all := l.buffer(Buffer{Rows: Examples, Columns: columns})
	at := 0
	for _, p := range parts {
		place := Value{all.Buffer, at, p.Columns}
		at += p.Columns
		_, moved := l.parents[p.Buffer]
		if b := l.Buffers[p.Buffer]; b.Source == Inner && !moved && p.Columns == b.Columns {
			if l.parents == nil {
				l.parents = map[int]Value{}
			}
			l.parents[p.Buffer] = place
			continue
		}
		l.Steps = append(l.Steps, Step{Attributes: ops.Attributes{Kind: KindCopy}, In: []Value{p}, Out: []Value{place}})
	}
	return all
}

// outputs sets the values that the engine reads, and places the gradients of parameters in their
// memory.
func (l *lowering) outputs() {
	g := l.graph
	l.Logits = l.of[g.Logits]
	if g.Loss == nil {
		return
	}
	l.Terms = l.of[g.Loss]
	for _, n := range g.Stats {
		l.Stats = append(l.Stats, l.of[n])
	}
	for i, n := range g.Gradients {
		v := l.of[n]
		if b := &l.Buffers[v.Buffer]; b.Source == Inner {
			b.Source, b.Index = Gradient, i
			continue
		}
		// The same node is the gradient of another parameter, too.
		b := l.Buffers[v.Buffer]
		b.Index = i
		l.Steps = append(l.Steps, Step{Attributes: ops.Attributes{Kind: KindCopy}, In: []Value{v}, Out: []Value{l.buffer(b)}})
	}
	for _, s := range l.Steps {
		if s.Kind == ops.KindBagPoolGrad {
			l.Pooled = s.In[0]
		}
	}
}
