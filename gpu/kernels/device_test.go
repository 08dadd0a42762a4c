//go:build nvidia && linux && amd64

package kernels_test

import (
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/gpu/kernels/kerneltest"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
)

// TestDevice holds the kernels on a device of this machine to what the twins compute.
func TestDevice(t *testing.T) {
	p, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	kerneltest.Run(t, testseed.Of(t), onEmulated("twin", twin.Images()), kerneltest.Kept("device", func() (gpu.Device, error) {
		d, err := p.Open(0)
		if err == nil {
			t.Cleanup(func() { _ = d.Close() })
		}
		return d, err
	}))
}
