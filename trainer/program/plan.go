package program

import "slices"

// lineElements is the number of elements in a cache line.
const lineElements = 16

// stride returns the distance between rows with the given number of columns. Rows longer than a
// cache line begin at one, so that vectors do not cross lines. Rows a multiple of 4 KiB apart would
// all fall into one set of the first-level cache, so their stride is one line longer.
func stride(columns int) int {
	if columns <= lineElements {
		return columns
	}
	n := (columns + lineElements - 1) / lineElements * lineElements
	if n%(4096/4) == 0 {
		n += lineElements
	}
	return n
}

// plan assigns memory to inner buffers.
func (l *lowering) plan() {
	first := make([]int, len(l.Buffers)) // step that writes to it first
	last := make([]int, len(l.Buffers))  // step that uses it last
	stages := make([]map[int]bool, len(l.Buffers))
	for b := range l.Buffers {
		first[b], stages[b] = -1, map[int]bool{}
		l.Buffers[b].Stride = l.Buffers[b].Columns
	}
	for n, stage := range l.Stages {
		for i := stage.First; i < stage.End; i++ {
			for _, v := range slices.Concat(l.Steps[i].In, l.Steps[i].Out) {
				if first[v.Buffer] < 0 {
					first[v.Buffer] = i
				}
				last[v.Buffer] = i
				stages[v.Buffer][n] = true
			}
		}
	}
	batch := map[int]bool{l.Logits.Buffer: true}
	if l.Training() {
		batch[l.Terms.Buffer], batch[l.Pooled.Buffer] = true, true
	}
	var tiles slotPlan
	starts := make([][]int, len(l.Steps)+1) // buffers of scope Tile, by their first step
	for b := range l.Buffers {
		buffer := &l.Buffers[b]
		if buffer.Source != Inner || buffer.Rows != Examples {
			continue
		}
		buffer.Stride = stride(buffer.Columns)
		switch {
		case batch[b]:
			buffer.Scope = Batch
		case len(stages[b]) > 1:
			buffer.Scope = Block
		default:
			starts[first[b]] = append(starts[first[b]], b)
		}
	}
	var live []int
	for i := range l.Steps {
		for _, b := range starts[i] {
			l.Buffers[b].Slot = tiles.take(l.Buffers[b].Stride)
			live = append(live, b)
		}
		// The memory of operands is free only after the step, since a result must not overlap them.
		live = slices.DeleteFunc(live, func(b int) bool {
			if last[b] == i {
				tiles.release(l.Buffers[b].Slot)
			}
			return last[b] == i
		})
	}
	l.Slots = tiles.sizes
}

// slotPlan assigns slots to buffers and determines the sizes of the slots.
type slotPlan struct {
	sizes  []int // of all slots
	unused []int // slots that hold nothing at present
}

// take returns an unused slot that holds size elements: the smallest one that is large enough, or
// else the largest one, which grows, or else a new one.
func (p *slotPlan) take(size int) int {
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

func (p *slotPlan) release(slot int) { p.unused = append(p.unused, slot) }
