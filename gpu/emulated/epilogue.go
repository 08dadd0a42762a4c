package emulated

import (
	"fmt"

	"aibox/gpu"
	"aibox/internal/kernel"
)

// Fuses implements gpu.Stream.
func (s *stream) Fuses(p gpu.Product) (fuses bool, err error) {
	err = s.dev.p.do(s.dev, fmt.Sprintf("Fuses of %v in %v", &p, s), func() (err error) {
		fuses, err = s.fuses(&p)
		return err
	})
	return fuses && err == nil, err
}

func (s *stream) fuses(p *gpu.Product) (bool, error) {
	a, b, c, err := p.Regions()
	if err != nil {
		return false, err
	}
	for _, u := range p.Args(a, b, c) {
		m, err := s.local("a region of the product", u.Region)
		if err != nil {
			return false, err
		}
		if m.freed {
			return false, gpu.Invalid("%v was freed", m)
		}
	}
	shape := p.Shape()
	fuses, known := s.fused[shape]
	switch {
	case !p.Epilogue.Any():
		return true, nil
	case known:
		return fuses, nil
	case s.capture != nil:
		return false, gpu.Invalid("the stream is being captured")
	}
	if err := s.prepare(); err != nil {
		return false, err
	}
	if s.fused == nil {
		s.fused = map[gpu.ProductShape]bool{}
	}
	says := s.dev.p.o.Fuses
	s.fused[shape] = says == nil || says(shape)
	return s.fused[shape], nil
}

// checkFused returns an error if the product has an epilogue that Fuses has not approved.
func (s *stream) checkFused(p *gpu.Product) error {
	if !p.Epilogue.Any() {
		return nil
	}
	fuses, asked := s.fused[p.Shape()]
	switch {
	case !asked:
		return gpu.Invalid("Fuses was not asked about a product of this shape")
	case !fuses:
		return gpu.Invalid("Fuses says that it cannot be done in one operation")
	}
	return nil
}

// finish does what the epilogue of a product does with c, its elements.
func finish(p *gpu.Product, c []float32, o *Options) {
	e := &p.Epilogue
	if !e.Any() {
		return
	}
	var bias []float32
	switch {
	case e.Bias.Memory != nil && p.Round:
		bias = side(gpu.BF16Product, e.Bias)
	case e.Bias.Memory != nil:
		bias = side(gpu.Float32Product, e.Bias)
	}
	for i := range p.M {
		row := c[i*p.C.Stride:][:p.N]
		for j, x := range row {
			if bias != nil && p.Round && o.RoundsFirst {
				x = kernel.RoundBF16(x)
			}
			if bias != nil {
				x += bias[j]
			}
			if e.ReLU && (x < 0 || o.ZeroesNaN && x != x) {
				x = 0
			}
			row[j] = x
		}
	}
}
