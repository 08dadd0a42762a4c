package emulated

import (
	"math"

	"aibox/gpu"
	"aibox/internal/half"
	"aibox/internal/kernel"
)

// Multiply implements gpu.Stream.
func (s *stream) Multiply(p gpu.Product) error {
	return s.do(p.String(), func() (work, error) {
		a, b, c, err := p.Regions()
		if err != nil {
			return work{}, err
		}
		w := work{uses: p.Args(a, b, c), run: func() error { s.dev.p.multiply(&p, a, b, c); return nil }}
		for _, u := range w.uses {
			if _, err := s.local("a region of the product", u.Region); err != nil {
				return work{}, err
			}
		}
		if err := s.prepare(); err != nil {
			return work{}, err
		}
		return w, s.checkFused(&p)
	})
}

// PrepareProducts implements gpu.Stream.
func (s *stream) PrepareProducts() error {
	return s.dev.p.do(s.dev, "PrepareProducts in "+s.String(), s.prepare)
}

// prepare takes the memory that a real device would need.
func (s *stream) prepare() error {
	if s.multiplies {
		return nil
	}
	if s.capture != nil {
		return gpu.Invalid("the stream was not prepared for products before the capture")
	}
	_, err := s.dev.take("products", int(s.dev.Info().ProductBytes), false)
	s.multiplies = err == nil
	return err
}

func (pl *Platform) multiply(p *gpu.Product, a, b, c gpu.Region) {
	multiply := pl.gem.Gemm
	if p.Precision == gpu.BF16Product {
		multiply = pl.gem.GemmBF16
	}
	var out []float32
	if p.Round {
		out = make([]float32, c.Extent()/2)
	} else {
		out = gpu.As[float32](within(c))
	}
	multiply(p.TransA, p.TransB, p.M, p.N, p.K, side(p.Precision, a), p.A.Stride, side(p.Precision, b), p.B.Stride,
		false, nil, out, p.C.Stride)
	finish(p, out, &pl.o)
	if p.Round {
		words := gpu.As[uint16](within(c))
		for i := range p.M {
			for j := i * p.C.Stride; j < i*p.C.Stride+p.N; j++ {
				words[j] = uint16(math.Float32bits(kernel.RoundBF16(out[j])) >> 16)
			}
		}
	}
}

// within is the bytes of a region, from the first to the last.
func within(r gpu.Region) []byte { return bare(r.Memory).data[r.Offset:][:r.Extent()] }

// side returns a side of a product as the device sees it.
func side(p gpu.Precision, r gpu.Region) []float32 {
	data := within(r)
	switch p {
	case gpu.BF16Product:
		words := gpu.As[uint16](data)
		out := make([]float32, len(words))
		for i, w := range words {
			out[i] = half.FromBFloat16(w)
		}
		return out
	case gpu.TF32Product:
		in := gpu.As[float32](data)
		out := make([]float32, len(in))
		for i, x := range in {
			out[i] = roundTF32(x)
		}
		return out
	}
	return gpu.As[float32](data)
}

// roundTF32 rounds to 10 bits behind the point, to nearest, ties away from zero.
func roundTF32(x float32) float32 {
	bits := math.Float32bits(x)
	if bits&0x7f800000 == 0x7f800000 {
		return x
	}
	return math.Float32frombits((bits + 0x1000) &^ 0x1fff)
}
