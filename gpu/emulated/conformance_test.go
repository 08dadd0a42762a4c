package emulated_test

import (
	"fmt"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/gputest"
	"aibox/gpu/profiled"
	"aibox/internal/testseed"
)

// newPlatform is a platform of two devices of 16 MiB.
func newPlatform(seed uint64) *emulated.Platform {
	return emulated.New(emulated.Options{Devices: emulated.Devices(2, 16<<20), Link: gpu.LinkNVLink, Images: images, Seed: seed})
}

// TestConformance runs the suite with seeds that differ in how late operations run.
func TestConformance(t *testing.T) {
	seeds := []uint64{0}
	rng := testseed.Rand(t)
	for range 30 {
		seeds = append(seeds, rng.Uint64())
	}
	if testing.Short() {
		seeds = seeds[:8]
	}
	for i, seed := range seeds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Logf("seed of the platform %d", seed)
			p := newPlatform(seed)
			gputest.Run(t, gputest.Subject{Platform: p, Image: gputest.Image(), Exact: true, Fuses: true})
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestConformanceProfiled: a platform whose operations are measured keeps what package gpu promises.
func TestConformanceProfiled(t *testing.T) {
	for _, seed := range []uint64{0, testseed.Of(t)} {
		p := newPlatform(seed)
		gputest.Run(t, gputest.Subject{Platform: profiled.New(p, new(profiled.Times)), Image: gputest.Image(), Exact: true, Fuses: true})
		if err := p.Err(); err != nil {
			t.Error(err)
		}
	}
}

// TestParams: the Go functions have the parameters that the image says.
func TestParams(t *testing.T) {
	for name, params := range gputest.Image().Params {
		if got := images["gputest"][name].Params; !slices.Equal(got, params) {
			t.Errorf("%s has parameters %v, the image says %v", name, got, params)
		}
	}
}
