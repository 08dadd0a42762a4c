package cuda

import (
	"aibox/gpu"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Products in tf32 and bfloat16 are up to five times as fast where rows begin and end at multiples
// of 16 bytes. The input of a layer often has another width, such as the vectors of 26 fields with
// 13 numbers beside them. So such a product takes extra columns of its input, which hold zeros, if
// the buffer has room for them. The same number of extra rows behind the weights hold zeros too.
// The gradient of these rows is therefore zero, so they stay zeros. Results do not change, except
// for the extra columns of a gradient that a product passes down, which nothing reads.

// padTo: padded column counts are multiples of it. 8 values of bfloat16 are 16 bytes.
const padTo = 8

func padded(columns int) int { return (columns + padTo - 1) / padTo * padTo }

// findPads finds the inputs and the weights of layers that can be padded.
func (l *layers) findPads() {
	l.padInputs, l.padWeights = map[program.Value]bool{}, map[int]int{}
	for i := range l.prog.Steps {
		s := &l.prog.Steps[i]
		if s.Kind != ops.KindLinear || s.TransB || padded(s.In[0].Columns) == s.In[0].Columns {
			continue
		}
		inputs, outputs, _ := productSize(s)
		w := &l.prog.Buffers[s.In[1].Buffer]
		if l.precisionOf(inputs, outputs) == gpu.Float32Product || w.Source != program.Param || s.In[1].Columns != w.Columns || w.Stride != w.Columns {
			continue
		}
		l.padWeights[w.Index] = (padded(inputs) - inputs) * outputs
		if h, ok := l.halfOf[s.In[0]]; ok {
			l.padInputs[s.In[0]] = !l.halfs[h].alone || l.isGathered(s.In[0]) // ToBF16 or the gathering step writes the zeros
		} else {
			l.padInputs[s.In[0]] = l.hasRoom(s.In[0])
		}
	}
}

// halfRows is how many rows a value has in bfloat16, with the padding of weights.
func (x *execution) halfRows(v program.Value, n int) int {
	b := &x.prog.Buffers[v.Buffer]
	if b.Source != program.Param || v.Columns != b.Columns {
		return x.rows(v, n)
	}
	return x.rows(v, n) + x.e.params.pads[b.Index]/b.Columns
}

// hasRoom reports whether a value is a whole buffer with one row per example, and with room for
// padding behind its columns.
func (l *layers) hasRoom(v program.Value) bool {
	b := &l.prog.Buffers[v.Buffer]
	return b.Source == program.Inner && b.Rows == program.Examples && v.Columns == b.Columns && b.Stride >= padded(b.Columns)
}

// isGathered reports whether a step writes only some of the columns of a value.
func (l *layers) isGathered(v program.Value) bool {
	for i := range l.prog.Steps {
		for _, out := range l.prog.Steps[i].Out {
			if out.Buffer == v.Buffer && out != v {
				return true
			}
		}
	}
	return false
}

// pad extends the product of a step to padded sizes where operands and result allow it.
func (u *run) pad(s *program.Step, p *gpu.Product) {
	if p.Precision == gpu.Float32Product {
		return
	}
	hasRows := func(v program.Value) bool { return u.e.params.pads[u.prog.Buffers[v.Buffer].Index] > 0 }
	source := func(v program.Value) program.Source { return u.prog.Buffers[v.Buffer].Source }
	switch {
	case s.Kind == ops.KindLinear:
		if u.padInputs[s.In[0]] && hasRows(s.In[1]) {
			p.K = padded(p.K)
		}
	case s.TransA:
		if u.padInputs[s.In[0]] && source(s.Out[0]) == program.Gradient && hasRows(s.Out[0]) {
			p.M = padded(p.M)
		}
	case source(s.In[1]) == program.Param && s.TransB:
		if hasRows(s.In[1]) && u.hasRoom(s.Out[0]) {
			p.N = padded(p.N)
		}
	}
}

// fillPad clears the padding columns of a layer's input, once in a run.
func (u *run) fillPad(r *replica, s *program.Step, n int) error {
	x := s.In[0]
	if _, rounded := u.halfOf[x]; rounded || !u.padInputs[x] || r.pads[x] == u.number {
		return nil
	}
	if r.pads == nil {
		r.pads = map[program.Value]int{}
	}
	r.pads[x] = u.number
	m := r.at(x)
	m.Offset, m.Columns = m.Offset+4*m.Columns, padded(m.Columns)-m.Columns
	return r.kernels.Clear(r.compute, m, n)
}
