package ops

import (
	"fmt"
	"sort"

	"gorgonia.org/gorgonia"
)

// partialDiffer is an op that can leave out gradients that are not needed, such as that of a layer
// with regard to the dense features.
type partialDiffer interface {
	// diff is SymDiff for the operands with need[i] set (nil: all).
	diff(need []bool, inputs gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error)
}

// Grad differentiates cost, a scalar, with regard to each node of wrt. It returns one gradient node
// for each, nil if cost does not depend on it.
//
// It is reverse-mode differentiation as in gorgonia.Grad. Nodes are visited in descending order of
// their IDs, which is a topological order, because an op is added to the graph after its operands.
// If a node is used several times, one Sum adds its gradients in the order in which they arise.
func Grad(cost *gorgonia.Node, wrt ...*gorgonia.Node) (gorgonia.Nodes, error) {
	if !cost.IsScalar() {
		return nil, fmt.Errorf("ops: cost %v has shape %v, want a scalar", cost, cost.Shape())
	}
	needed := needGradient(cost, wrt)
	terms := map[*gorgonia.Node]gorgonia.Nodes{}
	one := cost.Graph().AddNode(gorgonia.NewConstant(float32(1)))
	terms[cost] = gorgonia.Nodes{one}

	// Collect the nodes of the forward pass before ops are added below.
	forward := append(gorgonia.Nodes(nil), cost.Graph().AllNodes()...)
	sort.Slice(forward, func(i, j int) bool { return forward[i].ID() > forward[j].ID() })

	grads := map[*gorgonia.Node]*gorgonia.Node{}
	for _, node := range forward {
		if !needed[node] || len(terms[node]) == 0 {
			continue
		}
		grad := terms[node][0]
		if len(terms[node]) > 1 {
			var err error
			if grad, err = Sum(terms[node]...); err != nil {
				return nil, err
			}
		}
		grads[node] = grad
		if node.Op() == nil {
			continue // an input
		}
		op, ok := node.Op().(gorgonia.SDOp)
		if !ok {
			return nil, fmt.Errorf("ops: %v has no symbolic derivative", node.Op())
		}
		children := Children(node)
		need := op.DiffWRT(len(children))
		for i, child := range children {
			need[i] = need[i] && needed[child]
		}
		var childGrads gorgonia.Nodes
		var err error
		if p, ok := op.(partialDiffer); ok {
			childGrads, err = p.diff(need, children, node, grad)
		} else {
			childGrads, err = op.SymDiff(children, node, grad)
		}
		if err != nil {
			return nil, fmt.Errorf("ops: derivative of %v: %w", node.Op(), err)
		}
		for i, child := range children {
			if need[i] {
				terms[child] = append(terms[child], childGrads[i])
			}
		}
	}
	result := make(gorgonia.Nodes, len(wrt))
	for i, n := range wrt {
		result[i] = grads[n]
	}
	return result, nil
}

// needGradient returns the nodes on differentiable paths from wrt to cost.
func needGradient(cost *gorgonia.Node, wrt []*gorgonia.Node) map[*gorgonia.Node]bool {
	needed := map[*gorgonia.Node]bool{}
	for _, n := range wrt {
		needed[n] = true
	}
	seen := map[*gorgonia.Node]bool{}
	var visit func(n *gorgonia.Node) bool
	visit = func(n *gorgonia.Node) bool {
		if seen[n] {
			return needed[n]
		}
		seen[n] = true
		op, ok := n.Op().(gorgonia.SDOp)
		if !ok {
			return needed[n]
		}
		children := Children(n)
		for i, differentiable := range op.DiffWRT(len(children)) {
			if differentiable && visit(children[i]) {
				needed[n] = true
			}
		}
		return needed[n]
	}
	visit(cost)
	return needed
}
