package ops

import (
	"gorgonia.org/gorgonia"

	"aibox/internal/panics"
)

// Gorgonia's machine calls Do on a goroutine of its own, where a panic would end the
// process. So each op is wrapped by a guard, which turns a panic into the error of the
// run.

// guarded is an op in a graph.
type guarded struct{ gorgonia.Op }

// guardedSD is one that has a symbolic derivative.
type guardedSD struct {
	guarded
	sd gorgonia.SDOp
}

func guard(op gorgonia.Op) gorgonia.Op {
	if sd, ok := op.(gorgonia.SDOp); ok {
		return guardedSD{guarded{op}, sd}
	}
	return guarded{op}
}

// opOf returns the op of node without its guard, nil for an input.
func opOf(node *gorgonia.Node) gorgonia.Op {
	if g, ok := node.Op().(interface{ inner() gorgonia.Op }); ok {
		return g.inner()
	}
	return node.Op()
}

func (g guarded) inner() gorgonia.Op { return g.Op }

func (g guarded) Do(in ...gorgonia.Value) (result gorgonia.Value, err error) {
	defer panics.Catch("the op "+g.String(), &err)
	return g.Op.Do(in...)
}

func (g guardedSD) DiffWRT(inputs int) []bool { return g.sd.DiffWRT(inputs) }

func (g guardedSD) SymDiff(inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	return g.sd.SymDiff(inputs, output, grad)
}
