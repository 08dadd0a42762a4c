package cuda

import (
	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/trainer/program"
)

// Products that a device can do with their epilogue in one operation. What a stream has said of a shape once, it says again; so both
// steps of a pair, and all runs, find the same.

// fuseLayer enqueues a layer as one operation, if the device can.
func (u *run) fuseLayer(r *replica, step, n int) (fused bool, err error) {
	if !u.fusible(step) {
		return false, nil
	}
	s := &u.prog.Steps[step]
	p := u.layer(r, step, n)
	if both, ok := u.pairs[step]; ok {
		if fused, err = u.masked(r, both.derives, n); err != nil {
			return false, err
		}
		if fused {
			p.Epilogue.Mask = u.mask(r, both, n)
		}
	}
	if !fused {
		if fused, err = r.compute.Fuses(p); err != nil || !fused {
			return false, err
		}
	}
	if p.Epilogue.Round && p.Epilogue.Bias.Memory != nil {
		if err := u.roundWeights(r); err != nil {
			return false, err
		}
	}
	return true, u.multiply(r, s, p, n)
}

// fuseDerivative does the same with a step that derives.
func (u *run) fuseDerivative(r *replica, step, n int) (fused bool, err error) {
	if fused, err = u.masked(r, step, n); err != nil || !fused {
		return false, err
	}
	return true, u.multiply(r, &u.prog.Steps[step], u.derivative(r, u.pairs[step], n), n)
}

// masked tells whether the layer of a pair writes a mask, by which the product of the step that derives finds the derivative.
func (u *run) masked(r *replica, step, n int) (bool, error) {
	both, ok := u.pairs[step]
	if !ok || !u.fusible(both.layer) {
		return false, nil
	}
	forward := u.layer(r, both.layer, n)
	forward.Epilogue.Mask = u.mask(r, both, n)
	for _, p := range []gpu.Product{forward, u.derivative(r, both, n)} {
		if fuses, err := r.compute.Fuses(p); err != nil || !fuses {
			return false, err
		}
	}
	return true, nil
}

// fusible tells whether there is an epilogue that does what a layer does with its product.
func (l *layers) fusible(step int) bool {
	s := &l.prog.Steps[step]
	if !completes(s) || activation(s) > kernels.ReLU {
		return false
	}
	// An epilogue that rounds has its bias in bfloat16.
	return !l.isAlone(s.Out[0]) || l.rounds(s) && (l.weights || len(s.In) < 3)
}

// layer is the product of a layer with its epilogue, without a mask.
func (u *run) layer(r *replica, step, n int) gpu.Product {
	s := &u.prog.Steps[step]
	p := u.product(r, s, n)
	bias := r.biasOf(s)
	if p.Epilogue.ReLU = activation(s) == kernels.ReLU; bias.Memory != nil {
		p.Epilogue.Bias = bias.Region(1)
	}
	u.roundTo(r, s, &p)
	if p.Epilogue.Round && bias.Memory != nil {
		at := u.weightsAt + u.e.params.value[u.prog.Buffers[s.In[2].Buffer].Index]/2
		p.Epilogue.Bias = gpu.Part(r.arena, at, 2*bias.Columns)
	}
	return p
}

// derivative is the product, with its epilogue, of the step of a pair that derives.
func (u *run) derivative(r *replica, both pair, n int) gpu.Product {
	s := &u.prog.Steps[both.derives]
	p := u.product(r, s, n)
	p.Epilogue.DeriveMask = u.mask(r, both, n)
	if u.roundTo(r, s, &p); !p.Epilogue.Round && both.sums.Columns > 0 {
		p.Epilogue.Sums = r.at(both.sums).Region(1)
	}
	return p
}

// roundTo lets a product write its result where it is needed in bfloat16 alone.
func (u *run) roundTo(r *replica, s *program.Step, p *gpu.Product) {
	if h, ok := u.alone(r, s.Out[0]); ok {
		p.Epilogue.Round, p.C = true, h.Side()
	}
}

// mask is where the mask of a pair lies.
func (u *run) mask(r *replica, both pair, n int) gpu.Region {
	return gpu.Part(r.arena, u.masks[both.derives], gpu.MaskBytes(n, u.prog.Steps[both.layer].Out[0].Columns))
}
