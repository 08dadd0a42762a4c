package cpu

import (
	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Weights are packed once per mini-batch for all tiles, in the order in which the kernels read
// them: as they are for a layer's result, transposed for the gradient of its input.

// packFrom is the number of examples from which packing pays.
const packFrom = 128

// weights are the packed operands of the products of a program.
type weights struct {
	steps  []*program.Step // whose second operand is a parameter
	packed []kernel.PackedB
	of     map[*program.Step]int
	used   bool // for the current mini-batch
}

func (w *weights) init(p *program.Program) {
	w.of = map[*program.Step]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if (s.Kind == ops.KindLinear || s.Kind == ops.KindMatMul && !s.TransA) && p.Buffers[s.In[1].Buffer].Source == program.Param {
			w.of[s] = len(w.steps)
			w.steps = append(w.steps, s)
		}
	}
	w.packed = make([]kernel.PackedB, len(w.steps))
}

// operandSize returns the rows and columns of a step's second operand, transposed if the step
// transposes it.
func operandSize(p *program.Program, s *program.Step) (k, n int) {
	w := &p.Buffers[s.In[1].Buffer]
	if s.TransB {
		return w.Columns, w.Count
	}
	return w.Count, w.Columns
}

// runPacking packs operands lo to hi.
func (e *execution) runPacking(lo, hi int) {
	for i := lo; i < hi; i++ {
		s := e.weights.steps[i]
		k, n := operandSize(e.prog, s)
		pack := e.weights.packed[i].Pack
		if e.precision.Rounds(k, n) {
			pack = e.weights.packed[i].PackBF16
		}
		pack(s.TransB, k, n, e.base[s.In[1].Buffer], e.prog.Buffers[s.In[1].Buffer].Stride)
	}
}

// packed returns the packed second operand of a step, or nil.
func (e *execution) packed(s *program.Step) *kernel.PackedB {
	if !e.weights.used {
		return nil
	}
	if i, ok := e.weights.of[s]; ok {
		return &e.weights.packed[i]
	}
	return nil
}

// forecast returns an upper bound of what bytes will return.
func (w *weights) forecast(p *program.Program) int64 {
	n := int64(0)
	for _, s := range w.steps {
		k, columns := operandSize(p, s)
		n += 4 * int64(k) * int64((columns+2*lineElements-1)&^(2*lineElements-1))
	}
	return n
}

func (w *weights) bytes() int64 {
	n := int64(0)
	for i := range w.packed {
		n += int64(w.packed[i].Bytes())
	}
	return n
}
