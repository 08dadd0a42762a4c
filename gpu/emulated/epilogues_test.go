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

// layer is a product with an epilogue in memory of one device. Its bias is not written.
type layer struct {
	t    *testing.T
	p    *emulated.Platform
	a, b gpu.Stream // which were asked
	e    gpu.Event
	of   gpu.Product
	bias gpu.Region
}

func newLayer(t *testing.T, ask bool) *layer {
	t.Helper()
	const n = 8
	l := &layer{t: t, p: emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<20), Seed: 1})}
	d, err := l.p.Open(0)
	l.must(err)
	l.a, err = d.NewStream("a")
	l.must(err)
	l.b, err = d.NewStream("b")
	l.must(err)
	l.e, err = d.NewEvent("e")
	l.must(err)
	m, err := d.Alloc("m", 4*(2*n*n+n))
	l.must(err)
	side := gpu.Matrix{Memory: m, Stride: n}
	l.bias = gpu.Part(m, 8*n*n, 4*n)
	l.of = gpu.Product{M: n, N: n, K: n, A: side, B: side, C: side, Epilogue: gpu.Epilogue{Bias: l.bias, ReLU: true}}
	l.of.C.Offset = 4 * n * n
	l.must(errors.Join(l.a.Fill(gpu.Part(m, 0, 4*n*n), 0x3f800000), l.a.Synchronize()))
	for _, s := range []gpu.Stream{l.a, l.b} {
		if ask {
			_, err := s.Fuses(l.of)
			l.must(err)
		}
	}
	return l
}

func (l *layer) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestBiasHazards: that a product reads a bias is found as other accesses are.
func TestBiasHazards(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func(l *layer, right bool) error
		kind    emulated.HazardKind
	}{
		{"a bias that nothing has written", func(l *layer, right bool) error {
			if right {
				l.must(l.a.Fill(l.bias, 0))
			}
			return l.a.Multiply(l.of)
		}, emulated.Unwritten},
		{"a bias that another stream writes", func(l *layer, right bool) error {
			l.must(l.a.Fill(l.bias, 0))
			return l.inOrder(right, func() error { return l.b.Multiply(l.of) })
		}, emulated.Race},
		{"a bias that another stream overwrites", func(l *layer, right bool) error {
			l.must(errors.Join(l.a.Fill(l.bias, 0), l.a.Multiply(l.of)))
			return l.inOrder(right, func() error { return l.b.Fill(l.bias, 0) })
		}, emulated.Race},
	} {
		for _, right := range []bool{true, false} {
			l := newLayer(t, true)
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

// TestFusesFirst: a stream is asked about a shape before it multiplies, and before it is captured;
// another stream, and another shape, are asked for themselves.
func TestFusesFirst(t *testing.T) {
	l := newLayer(t, false)
	refused := func(what string, err error, says string) {
		t.Helper()
		if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want: %s", what, err, says)
		}
	}
	ask := func() error { _, err := l.a.Fuses(l.of); return err }
	refused("unasked", l.a.Multiply(l.of), "was not asked")
	_, err := l.a.Capture("g", ask)
	refused("while captured", err, "captured")
	l.must(ask())
	refused("in another stream", l.b.Multiply(l.of), "was not asked")
	other := l.of
	other.M--
	refused("of another shape", l.a.Multiply(other), "was not asked")
	other = l.of
	other.Epilogue.ReLU = false
	refused("with another epilogue", l.a.Multiply(other), "was not asked")
	g, err := l.a.Capture("g", func() error { return errors.Join(ask(), l.a.Multiply(l.of)) })
	l.must(err)
	l.must(errors.Join(l.a.Fill(l.bias, 0), l.a.Run(g), l.a.Synchronize(), l.p.Err()))
	other.Epilogue = gpu.Epilogue{}
	if fuses, err := l.b.Fuses(other); !fuses || err != nil {
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
