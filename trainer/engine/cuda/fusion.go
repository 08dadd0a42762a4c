package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/program"
)

// fuseLayer enqueues a layer as one operation if the device can fuse the product with its epilogue.
func (u *run) fuseLayer(r *replica, step, n int) (fused bool, err error) {
	s := &u.prog.Steps[step]
	if !u.fusible(s) {
		return false, nil
	}
	p := u.layer(r, s, n)
	if fused, err = r.compute.Fuses(p); err != nil || !fused {
		return false, err
	}
	return true, u.multiply(r, s, p, n)
}

// fusible reports whether gpu.Epilogue can express what a layer does with its product.
func (l *layers) fusible(s *program.Step) bool {
	if !completes(s) || activation(s) > kernels.ReLU {
		return false
	}
	// A product that rounds its result takes its bias in bfloat16.
	return !l.isAlone(s.Out[0]) || l.rounds(s) && (l.weights || len(s.In) < 3)
}

// layer returns the product of a layer, with its epilogue.
func (u *run) layer(r *replica, s *program.Step, n int) gpu.Product {
	p := u.product(r, s, n)
	bias := r.biasOf(s)
	if p.Epilogue.ReLU = activation(s) == kernels.ReLU; bias.Memory != nil {
		p.Epilogue.Bias = bias.Region(1)
	}
	if h, ok := u.alone(r, s.Out[0]); ok {
		p.Round, p.C = true, h.Side()
		if bias.Memory != nil {
			at := u.e.params.value[u.prog.Buffers[s.In[2].Buffer].Index]
			p.Epilogue.Bias = r.half(u.rounded(), at, bias.Columns).Region(1)
		}
	}
	return p
}
