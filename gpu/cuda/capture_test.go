//go:build nvidia && linux && amd64

package cuda_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/gpu/gputest"
)

// TestCaptureFails: what the driver does not take is the error of Capture, which says of which
// operation it is; the stream goes on.
func TestCaptureFails(t *testing.T) {
	d := openDevice(t, openPlatform(t), 0)
	if !isFake() {
		t.Log("no driver but the fake one refuses the launch")
		return
	}
	s := must[gpu.Stream](t)(d.NewStream("s"))
	out, copied := must[gpu.Memory](t)(d.Alloc("out", 128)), must[gpu.Memory](t)(d.Alloc("copied", 128))
	place := must[gpu.Kernel](t)(must[gpu.Module](t)(d.Load(gputest.Image())).Kernel("place"))
	launch := func(grid gpu.Dim) func() error {
		return func() error {
			check(t, s.Fill(gpu.Part(copied, 0, 64), 1), s.Fill(gpu.Part(copied, 64, 64), 2))
			check(t, s.Launch(place, gpu.Geometry{Grid: grid, Block: gpu.Dim{X: 32}}, gpu.Write(gpu.All(out))))
			return s.Copy(gpu.All(copied), gpu.All(out))
		}
	}
	_, err := s.Capture("bad", launch(gpu.Dim{X: 1 << 17, Y: 1 << 15})) // 1<<32 blocks
	if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), `kernel "place" in Capture of graph "bad"`) {
		t.Errorf("a launch that the driver refuses: %v", err)
	}
	check(t, s.Run(must[gpu.Graph](t)(s.Capture("good", launch(gpu.Dim{})))))
	if got := numbers(t, s, gpu.All(copied)); got[31] != gpu.As[float32]([]byte{31, 0, 0, 0})[0] {
		t.Errorf("%v", got)
	}
}

// TestChain: with Options.Chain the operations of a graph run one after the other, also those that
// do not say what they write. Otherwise the fake driver runs them in another order.
func TestChain(t *testing.T) {
	for _, chain := range []bool{true, false} {
		t.Run(fmt.Sprint(chain), func(t *testing.T) {
			p, err := cuda.OpenWith(cuda.Options{Chain: chain})
			if err != nil {
				t.Skip(err)
			}
			d := openDevice(t, p, 0)
			s := must[gpu.Stream](t)(d.NewStream("s"))
			m := must[gpu.Memory](t)(d.Alloc("m", 128))
			place := must[gpu.Kernel](t)(must[gpu.Module](t)(d.Load(gputest.Image())).Kernel("place"))
			g := must[gpu.Graph](t)(s.Capture("g", func() error {
				check(t, s.Launch(place, gpu.Linear(32, 32), gpu.Write(gpu.Part(m, 0, 64)))) // it writes 128 bytes
				return s.Fill(gpu.Part(m, 64, 64), 0x3f800000)
			}))
			var seen []float32
			for range 8 {
				check(t, s.Run(g))
				seen = append(seen, numbers(t, s, gpu.Part(m, 124, 4))[0])
			}
			if always := slices.Min(seen) == 1; always != chain && (chain || isFake()) {
				t.Errorf("chain %v: the last number was %v", chain, seen)
			}
		})
	}
}
