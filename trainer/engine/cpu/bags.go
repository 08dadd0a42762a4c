package cpu

import "aibox/trainer/engine/hostrows"

// RowGrad writes the gradient of unique row i of the last mini-batch of Train into out (RowDim):
// see hostrows.Bags. Any number of threads may call it at the same time.
func (m *Machine) RowGrad(i int, out []float32) {
	m.train.bags.RowGrad(i, m.train.pooledGrad(), out, make([]float32, len(out)))
}

// pooledGrad returns the gradients of the pooled bags.
func (e *execution) pooledGrad() hostrows.Gradients {
	v := e.prog.Pooled
	return hostrows.Gradients{Data: e.base[v.Buffer][v.Column:], Stride: e.prog.Buffers[v.Buffer].Stride}
}
