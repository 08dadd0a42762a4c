package kernels_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/twin"
)

// Load says which kernel an image lacks.
func TestLoadWithoutAKernel(t *testing.T) {
	image := maps.Clone(twin.Kernels)
	delete(image, "fm")
	dev := onEmulated("", map[string]emulated.Kernels{kernels.Image().Name: image}).Open(t, 1)
	if _, err := kernels.Load(dev); !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), `"fm"`) {
		t.Errorf("Load of an image without fm: %v", err)
	}
}

// refusing returns kernels on an emulated device, a stream, and memory that nothing has written: a
// launch that reads it would be found.
func refusing(t *testing.T) (*kernels.Set, gpu.Stream, gpu.Memory) {
	t.Helper()
	dev := onEmulated("", twin.Images()).Open(t, 1)
	k, err := kernels.Load(dev)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dev.NewStream("test")
	if err != nil {
		t.Fatal(err)
	}
	m, err := dev.Alloc("test", 4096)
	if err != nil {
		t.Fatal(err)
	}
	return k, s, m
}

// Launches whose numbers the kernels, which count in 32 bits, could not hold are refused.
func TestLaunchesThatAreTooLarge(t *testing.T) {
	k, s, m := refusing(t)
	x := kernels.Matrix{Memory: m, Columns: 1 << 12, Stride: 1 << 12}
	y := x
	y.Stride = 1 << 31
	for want, err := range map[string]error{
		"at most 2^31-1":                       k.Copy(s, x, x, 1<<19),
		"argument 4 is negative":               k.Copy(s, x, x, -1),
		"argument 3 is negative, or more than": k.Copy(s, x, y, 1),
	} {
		if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), `kernel "copy_rows"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	}
}

// A device launches no kernel with more threads than its code is compiled for, or with more shared
// memory than a block has, that which the kernel declares included; nor do emulated devices.
func TestLaunchesThatTheCodeDoesNotAllow(t *testing.T) {
	_, s, m := refusing(t)
	image, err := s.Device().Load(kernels.Image())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := image.Kernel("row_sum")
	if err != nil {
		t.Fatal(err)
	}
	for want, g := range map[string]gpu.Geometry{
		"the kernel is compiled for 256":          gpu.Linear(512, 512),
		"of which the kernel declares 1024: the ": {Block: gpu.Dim{X: 256}, SharedBytes: 48<<10 - 1020},
	} {
		x, y := gpu.Part(m, 0, 4), gpu.Part(m, 4, 4)
		err := s.Launch(sum, g, gpu.Write(y), gpu.Int32(1), gpu.Read(x), gpu.Int32(1), gpu.Int32(1), gpu.Int32(1))
		if !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want: %s", err, want)
		}
	}
}

// Numbers that do not lie at a multiple of their size make a kernel fail, as on a device.
func TestNumbersThatLieWrong(t *testing.T) {
	k, s, m := refusing(t)
	if err := s.Fill(gpu.All(m), 0); err != nil {
		t.Fatal(err)
	}
	x := kernels.Matrix{Memory: m, Columns: 1, Stride: 1}
	y := x
	y.Offset = 8
	step := func(offset int) error {
		if err := k.Dropout(s, kernels.Dropout{}, y, x, gpu.Part(m, offset, 8), 0, 1); err != nil {
			return err
		}
		return s.Synchronize()
	}
	if err := step(16); err != nil {
		t.Error(err)
	}
	if err := step(20); !errors.Is(err, gpu.LaunchFailed) {
		t.Errorf("8 bytes at a multiple of 4: %v", err)
	}
}
