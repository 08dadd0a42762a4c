package gpu_test

import (
	"testing"

	"aibox/gpu"
)

// TestShapes: the shape of a product changes with all that a choice of an algorithm may depend on,
// and with nothing else.
func TestShapes(t *testing.T) {
	product := func() gpu.Product {
		m := memory(1 << 20)
		at := func(offset int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: offset, Stride: 64} }
		return gpu.Product{M: 16, N: 64, K: 64, A: at(0), B: at(1 << 16), C: at(2 << 16), Epilogue: gpu.Epilogue{Bias: gpu.Part(m, 3<<16, 256), ReLU: true}}
	}
	p := product()
	shape := p.Shape()
	for what, change := range map[string]func(p *gpu.Product){
		"precision": func(p *gpu.Product) { p.Precision = gpu.TF32Product },
		"A's side":  func(p *gpu.Product) { p.TransA = true }, "B's side": func(p *gpu.Product) { p.TransB = true },
		"M": func(p *gpu.Product) { p.M++ }, "N": func(p *gpu.Product) { p.N++ }, "K": func(p *gpu.Product) { p.K++ },
		"A's stride": func(p *gpu.Product) { p.A.Stride++ }, "B's stride": func(p *gpu.Product) { p.B.Stride++ }, "C's stride": func(p *gpu.Product) { p.C.Stride++ },
		"A's place": func(p *gpu.Product) { p.A.Offset += 128 }, "B's place": func(p *gpu.Product) { p.B.Offset += 16 }, "C's place": func(p *gpu.Product) { p.C.Offset += 4 },
		"bias": func(p *gpu.Product) { p.Epilogue.Bias = gpu.Region{} }, "relu": func(p *gpu.Product) { p.Epilogue.ReLU = false },
		"bias's place": func(p *gpu.Product) { p.Epilogue.Bias.Offset += 4 }, "format": func(p *gpu.Product) { p.Round = true },
	} {
		p := product()
		if change(&p); p.Shape() == shape {
			t.Errorf("another %s is the same shape", what)
		}
	}
	p.A.Memory, p.A.Offset = memory(2<<20), 1<<20
	p.Epilogue.Bias.Offset += 256
	if p.Shape() != shape {
		t.Errorf("%+v and %+v", p.Shape(), shape)
	}
	p.Round = true
	if got := p.String(); got != "product float32 16x64x64 bias+relu rounded" {
		t.Error(got)
	}
}
