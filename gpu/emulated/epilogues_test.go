package emulated_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/gputest"
)

// layer is what a product needs for the forward and for the backward pass, in memory of one device, all of it written but
// the mask and the sums.
type layer struct {
	t                     *testing.T
	p                     *emulated.Platform
	a, b                  gpu.Stream
	e                     gpu.Event
	x, y, dx, mask, sums  gpu.Memory
	bias                  gpu.Memory
	forwardly, backwardly gpu.Product
}

const layerSize = 8 // rows, columns, and numbers that are summed up

func newLayer(t *testing.T, o emulated.Options) *layer {
	t.Helper()
	o.Devices = emulated.Devices(1, 1<<20)
	l := &layer{t: t, p: emulated.New(o)}
	d, err := l.p.Open(0)
	l.must(err)
	l.a, err = d.NewStream("a")
	l.must(err)
	l.b, err = d.NewStream("b")
	l.must(err)
	l.e, err = d.NewEvent("e")
	l.must(err)
	for m, bytes := range map[*gpu.Memory]int{
		&l.x: 4 * layerSize * layerSize, &l.y: 4 * layerSize * layerSize, &l.dx: 4 * layerSize * layerSize,
		&l.mask: gpu.MaskBytes(layerSize, layerSize), &l.sums: 4 * layerSize, &l.bias: 4 * layerSize,
	} {
		*m, err = d.Alloc("m", bytes)
		l.must(err)
	}
	l.must(errors.Join(l.a.Fill(gpu.All(l.x), 0x3f800000), l.a.Fill(gpu.All(l.bias), 0x3f800000), l.a.Synchronize()))
	side := func(m gpu.Memory) gpu.Matrix { return gpu.Matrix{Memory: m, Stride: layerSize} }
	l.forwardly = gpu.Product{M: layerSize, N: layerSize, K: layerSize, A: side(l.x), B: side(l.x), C: side(l.y)}
	l.backwardly = l.forwardly
	l.backwardly.C = side(l.dx)
	l.forwardly.Epilogue = gpu.Epilogue{Bias: gpu.All(l.bias), ReLU: true, Mask: gpu.All(l.mask)}
	l.backwardly.Epilogue = gpu.Epilogue{DeriveMask: gpu.All(l.mask), Sums: gpu.All(l.sums)}
	return l
}

func (l *layer) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// ask asks in a stream about both products.
func (l *layer) ask(s gpu.Stream) {
	l.t.Helper()
	for _, p := range []gpu.Product{l.forwardly, l.backwardly} {
		fuses, err := s.Fuses(p)
		l.must(err)
		if !fuses {
			l.t.Fatal("it does not fuse")
		}
	}
}

// TestEpilogueHazards: what an epilogue reads and writes is found as other accesses are.
func TestEpilogueHazards(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func(l *layer, right bool) error
		kind    emulated.HazardKind
	}{
		{"a mask that nothing has written", func(l *layer, right bool) error {
			if right {
				l.must(l.a.Multiply(l.forwardly))
			}
			return l.a.Multiply(l.backwardly)
		}, emulated.Unwritten},
		{"a mask that another stream writes", func(l *layer, right bool) error {
			l.must(l.a.Multiply(l.forwardly))
			return l.inOrder(right, func() error { return l.b.Multiply(l.backwardly) })
		}, emulated.Race},
		{"a bias that another stream writes", func(l *layer, right bool) error {
			l.must(l.a.Fill(gpu.All(l.bias), 0))
			return l.inOrder(right, func() error { return l.b.Multiply(l.forwardly) })
		}, emulated.Race},
		{"a bias that another stream overwrites", func(l *layer, right bool) error {
			l.must(l.a.Multiply(l.forwardly))
			return l.inOrder(right, func() error { return l.b.Fill(gpu.All(l.bias), 0) })
		}, emulated.Race},
		{"sums that another stream reads", func(l *layer, right bool) error {
			l.must(errors.Join(l.a.Multiply(l.forwardly), l.a.Multiply(l.backwardly)))
			return l.inOrder(right, func() error { return l.b.Copy(gpu.All(l.bias), gpu.All(l.sums)) })
		}, emulated.Race},
	} {
		for _, right := range []bool{true, false} {
			l := newLayer(t, emulated.Options{Seed: 1})
			l.ask(l.a)
			l.ask(l.b)
			err := c.program(l, right)
			var h *emulated.Hazard
			if right {
				if err = errors.Join(err, l.a.Synchronize(), l.b.Synchronize()); err != nil {
					t.Errorf("%s, in order: %v", c.name, err)
				}
			} else if !errors.As(err, &h) || h.Kind != c.kind {
				t.Errorf("%s: %v, want a hazard: %s", c.name, err, c.kind)
			}
		}
	}
}

// inOrder calls f, whose operations of stream b come after those of stream a if that is right.
func (l *layer) inOrder(right bool, f func() error) error {
	if right {
		l.must(errors.Join(l.a.Record(l.e), l.b.Wait(l.e)))
	}
	return f()
}

// TestFusesFirst: a stream is asked about a shape before it multiplies, and before it is captured; another stream, and another shape,
// are asked for themselves.
func TestFusesFirst(t *testing.T) {
	l := newLayer(t, emulated.Options{})
	refused := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want: %s", what, err, says)
		}
	}
	ask := func() error { _, err := l.a.Fuses(l.forwardly); return err }
	refused("unasked", l.a.Multiply(l.forwardly), "was not asked")
	_, err := l.a.Capture("g", ask)
	refused("while captured", err, "captured")
	l.ask(l.a)
	refused("in another stream", l.b.Multiply(l.forwardly), "was not asked")
	other := l.forwardly
	other.M--
	other.Epilogue.Mask.Width = gpu.MaskBytes(other.M, other.N)
	refused("of another shape", l.a.Multiply(other), "was not asked")
	other = l.forwardly
	other.Epilogue.Mask = gpu.Region{}
	refused("with another epilogue", l.a.Multiply(other), "was not asked")
	g, err := l.a.Capture("g", func() error { return errors.Join(ask(), l.a.Multiply(l.forwardly), l.a.Multiply(l.backwardly)) })
	l.must(err)
	l.must(errors.Join(l.a.Run(g), l.a.Synchronize(), l.p.Err()))
	if fuses, err := l.b.Fuses(gpu.Product{M: 1, N: 1, K: 1, A: l.forwardly.A, B: l.forwardly.B, C: l.forwardly.C}); !fuses || err != nil {
		t.Errorf("a product without an epilogue: %v, %v", fuses, err)
	}
}

// TestConformanceFuses runs the suite where some products, or all, cannot be done with their epilogues.
func TestConformanceFuses(t *testing.T) {
	yes, no := 0, 0
	for name, fuses := range map[string]func(gpu.ProductShape) bool{
		"none": func(gpu.ProductShape) bool { return false },
		"some": func(s gpu.ProductShape) bool {
			even := (s.M+s.N+s.K)%2 == 0
			if even {
				yes++
			} else {
				no++
			}
			return even
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := emulated.New(emulated.Options{Devices: emulated.Devices(2, 16<<20), Images: images, Fuses: fuses})
			gputest.Run(t, gputest.Subject{Platform: p, Image: gputest.Image(), Exact: true})
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		})
	}
	if yes == 0 || no == 0 {
		t.Error(fmt.Sprint(yes, no))
	}
}

// TestConformanceRoundsFirst: the suite takes all that devices may do with products that become bfloat16.
func TestConformanceRoundsFirst(t *testing.T) {
	p := emulated.New(emulated.Options{Devices: emulated.Devices(2, 16<<20), Images: images, RoundsFirst: true})
	gputest.Run(t, gputest.Subject{Platform: p, Image: gputest.Image()})
}
