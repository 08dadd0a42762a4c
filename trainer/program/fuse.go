package program

import "aibox/trainer/ops"

// fuseBiases merges the gradients of a layer's weights and biases into one step, since both are
// sums over the rows of dz.
func (l *lowering) fuseBiases() {
	sums := map[Value]int{}
	for i, s := range l.Steps {
		if s.Kind == ops.KindColumnSum {
			sums[s.In[0]] = i
		}
	}
	fused := map[int]bool{}
	for i := range l.Steps {
		s := &l.Steps[i]
		if s.Kind != ops.KindMatMul || !s.TransA || s.TransB {
			continue
		}
		if sum, ok := sums[s.In[1]]; ok && !fused[sum] && sum > i {
			s.Out = append(s.Out, l.Steps[sum].Out[0])
			fused[sum] = true
		}
	}
	steps := l.Steps[:0]
	for i, s := range l.Steps {
		if !fused[i] {
			steps = append(steps, s)
		}
	}
	l.Steps = steps
}

// fuseDerivatives merges two steps: the gradient of a layer's input, and its product with the
// derivative of the activation that computed this input. It does so only if nothing else needs the
// former.
func (l *lowering) fuseDerivatives() {
	uses := map[int]int{} // of each buffer
	for _, s := range l.Steps {
		for _, v := range s.In {
			uses[v.Buffer]++
		}
	}
	producers := map[int]int{} // of whole buffers
	for i, s := range l.Steps {
		if s.Kind == ops.KindMatMul && !s.TransA {
			producers[s.Out[0].Buffer] = i
		}
	}
	steps := l.Steps[:0:0]
	for i := range l.Steps {
		s := &l.Steps[i]
		if s.Kind == ops.KindActivateGrad {
			y, dy := s.In[0], s.In[1]
			p, ok := producers[dy.Buffer]
			if ok && uses[dy.Buffer] == 1 && dy.Columns == l.Buffers[dy.Buffer].Columns {
				// The product moves to this position, where y is known.
				fused := l.Steps[p]
				fused.Activation = s.Activation
				fused.In = append(append([]Value(nil), fused.In...), y)
				fused.Out = s.Out
				l.Steps[p].Out = nil
				*s = fused
			}
		}
	}
	for _, s := range l.Steps {
		if s.Out != nil {
			steps = append(steps, s)
		}
	}
	l.Steps = steps
}
