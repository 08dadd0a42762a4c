package kernels_test

import (
	"maps"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kerneltest"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
)

// onEmulated is emulated devices with kernels.
func onEmulated(name string, images map[string]emulated.Kernels) kerneltest.Subject {
	return kerneltest.Subject{Name: name, Open: func(t *testing.T, seed uint64) gpu.Device {
		p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<30), Images: images, Seed: seed})
		d, err := p.Open(0)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}}
}

// The twins compute what the steps mean.
func TestTwins(t *testing.T) {
	kerneltest.Run(t, testseed.Of(t), onEmulated("twin", twin.Images()))
}

// A device that stays open from trial to trial computes the same.
func TestKept(t *testing.T) {
	p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<30), Images: twin.Images(), Seed: testseed.Of(t)})
	opened := 0
	kerneltest.Run(t, testseed.Of(t), onEmulated("twin", twin.Images()), kerneltest.Kept("kept", func() (gpu.Device, error) {
		opened++
		return p.Open(0)
	}))
	if opened != 1 {
		t.Errorf("it was opened %d times", opened)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// There is a twin for each kernel, and none without a kernel.
func TestTwinsOfAll(t *testing.T) {
	have, want := slices.Sorted(maps.Keys(twin.Kernels)), kernels.Names()
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("there are twins %q for kernels %q", have, want)
	}
}
