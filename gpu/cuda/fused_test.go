//go:build nvidia && linux && amd64

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
)

// isFake tells whether the driver is the fake one, whose cuBLASLt can do all products with epilogues.
func isFake() bool { return os.Getenv("FAKE_DEVICES") != "" }

// withBias is a product with an epilogue, on memory that holds 1.
func withBias(t *testing.T, s gpu.Stream) (p gpu.Product, c gpu.Region) {
	t.Helper()
	const n = 8
	m := must[gpu.Memory](t)(s.Device().Alloc("m", 4*256))
	check(t, s.Fill(gpu.All(m), 0x3f800000))
	at := func(i int) gpu.Matrix { return gpu.Matrix{Memory: m, Offset: 256 * i, Stride: n} }
	p = gpu.Product{M: n, N: n, K: n, A: at(0), B: at(1), C: at(2), Epilogue: gpu.Epilogue{Bias: gpu.Part(m, 3*256, 4*n), ReLU: true}}
	return p, gpu.Part(m, 2*256, 4*n*n)
}

// TestFusesNot: where products are not done with their epilogues, because cuBLASLt is missing, is
// too old or cannot, or because the platform was told so, they are refused, and others work as
// ever.
func TestFusesNot(t *testing.T) {
	options := []cuda.Options{{NoEpilogues: true}}
	if os.Getenv("FAKE_LT") != "" {
		options = append(options, cuda.Options{})
	}
	for _, o := range options {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			p, err := cuda.OpenWith(o)
			if err != nil {
				t.Skip(err)
			}
			s := must[gpu.Stream](t)(openDevice(t, p, 0).NewStream("s"))
			product, c := withBias(t, s)
			for range 2 {
				if must[bool](t)(s.Fuses(product)) {
					t.Error("a product with an epilogue can be done")
				}
				if err := s.Multiply(product); !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), "Fuses says") {
					t.Errorf("Multiply: %v", err)
				}
			}
			product.Epilogue = gpu.Epilogue{}
			if !must[bool](t)(s.Fuses(product)) {
				t.Error("a product without an epilogue cannot be done")
			}
			check(t, s.Multiply(product))
			if got := numbers(t, s, c); got[0] != 8 {
				t.Errorf("%v, want 8", got[0])
			}
		})
	}
}

// TestFusesBeforeCapture: cuBLASLt chooses an algorithm before a capture, or not at all.
func TestFusesBeforeCapture(t *testing.T) {
	s := must[gpu.Stream](t)(openDevice(t, openPlatform(t), 0).NewStream("s"))
	product, c := withBias(t, s)
	if !isFake() && !must[bool](t)(must[gpu.Stream](t)(s.Device().NewStream("other")).Fuses(product)) {
		t.Skip("the device does no such product with its epilogue")
	}
	check(t, s.PrepareProducts())
	for what, call := range map[string]func() error{
		"Fuses": func() error { _, err := s.Fuses(product); return err }, "Multiply": func() error { return s.Multiply(product) },
	} {
		if _, err := s.Capture("early", call); !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), "was not asked") {
			t.Errorf("%s in a capture: %v", what, err)
		}
	}
	must[bool](t)(s.Fuses(product))
	g := must[gpu.Graph](t)(s.Capture("g", func() error { _, err := s.Fuses(product); return errors.Join(err, s.Multiply(product)) }))
	check(t, s.Run(g), s.Run(g))
	if got := numbers(t, s, c); got[0] != 9 {
		t.Errorf("%v, want 9", got[0])
	}
	check(t, product.Epilogue.Bias.Memory.Free())
	if err := s.Run(g); !errors.Is(err, gpu.InvalidArgument) {
		t.Errorf("Run with a bias that was freed: %v", err)
	}
}
