package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// Share lets the results of g's ops use the same memory where their lives do
// not overlap: a result's memory goes to a later op once the last op that reads
// it has run. The results of the nodes in keep stay until the next run, and so do those
// with memory of the caller's (SetResult); the values of all other nodes must not be read
// after a run. Results whose size is known only at run time keep memory of their own.
// Share is called once, when g is complete and before it runs.
//
// Share returns the number of bytes that the shared results occupy. In a
// differentiated network, the activations keep their memory until their layer's
// derivative has run, and gradients share the rest; in a network for inference the memory
// does not grow with depth.
func Share(g *gorgonia.ExprGraph, keep ...*gorgonia.Node) (bytes int, err error) {
	// The tape machine executes this order, reversed.
	order, err := gorgonia.Sort(g)
	if err != nil {
		return 0, fmt.Errorf("ops: %w", err)
	}
	slices.Reverse(order)
	lastUse := map[*gorgonia.Node]int{}
	for i, node := range order {
		lastUse[node] = i // until a reader is found
		for _, child := range Children(node) {
			lastUse[child] = i
		}
	}
	for _, node := range keep {
		lastUse[node] = len(order)
	}

	var plan memoryPlan
	slotOf := map[*gorgonia.Node]int{} // all shared results
	live := map[*gorgonia.Node]bool{}  // those that hold their slot at this point
	for i, node := range order {
		if op, ok := opOf(node).(sharer); ok && op.sharable() && node.Shape().Dims() > 0 {
			slotOf[node] = plan.take(node.Shape().TotalSize())
			live[node] = true
		}
		// The operands' memory is released only now, because a result must not overlap
		// the operands of its op.
		for _, n := range append(Children(node), node) {
			if live[n] && lastUse[n] == i {
				plan.release(slotOf[n])
				delete(live, n)
			}
		}
	}
	memory := make([][]float32, len(plan.sizes))
	for slot, size := range plan.sizes {
		memory[slot] = make([]float32, size)
		bytes += 4 * size
	}
	for node, slot := range slotOf {
		opOf(node).(sharer).place(memory[slot])
	}
	return bytes, nil
}

// sharer is an op whose result may lie in memory that Share chose.
type sharer interface {
	sharable() bool
	place(memory []float32)
}

func (b *base) sharable() bool { return !b.fixed }

func (b *base) place(memory []float32) { b.result, b.data = nil, memory }

// sharable: the number of unique rows is not known when the graph is built.
func (op *bagPoolGrad) sharable() bool { return false }

// memoryPlan assigns slots of memory to results, and finds the necessary sizes of the
// slots while it does so.
type memoryPlan struct {
	sizes  []int // of all slots
	unused []int // slots that hold nothing at present
}

// take returns an unused slot that holds size values: the smallest that is
// large enough, else the largest, which grows, else a new one.
func (p *memoryPlan) take(size int) int {
	best := -1
	for i, slot := range p.unused {
		if best < 0 {
			best = i
			continue
		}
		have, bestHas := p.sizes[slot], p.sizes[p.unused[best]]
		if have >= size && (bestHas < size || have < bestHas) || have < size && bestHas < have {
			best = i
		}
	}
	if best < 0 {
		p.sizes = append(p.sizes, size)
		return len(p.sizes) - 1
	}
	slot := p.unused[best]
	p.unused = slices.Delete(p.unused, best, best+1)
	p.sizes[slot] = max(p.sizes[slot], size)
	return slot
}

func (p *memoryPlan) release(slot int) { p.unused = append(p.unused, slot) }
