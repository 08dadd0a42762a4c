//go:build nvidia && linux && amd64

package cuda_test

import (
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/gpu/gputest"
	"aibox/gpu/profiled"
)

// sticky tells whether failures may be: those of real drivers, and of a fake one that was asked for them.
func sticky() bool { return !isFake() || os.Getenv("FAKE_STICKY") != "" }

// TestConformance runs the suite on the devices of this machine.
func TestConformance(t *testing.T) {
	p, err := cuda.Open()
	if err != nil {
		t.Skip(err)
	}
	for _, line := range cuda.Describe() {
		t.Log(line)
	}
	gputest.Run(t, gputest.Subject{Platform: p, Image: gputest.Image(), Sticky: sticky(), Fuses: isFake()})
}

// TestConformanceProfiled runs it with operations that are measured.
func TestConformanceProfiled(t *testing.T) {
	times := new(profiled.Times)
	gputest.Run(t, gputest.Subject{Platform: profiled.New(openPlatform(t), times), Image: gputest.Image(), Sticky: sticky(), Fuses: isFake()})
	var out strings.Builder
	if err := times.Write(&out); err != nil || strings.Count(out.String(), "all-reduce") == 0 || strings.Count(out.String(), "product ") == 0 {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// TestNeedsNoDriver looks which libraries this program needs to start, and what happens where there
// is no device.
func TestNeedsNoDriver(t *testing.T) {
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		for _, not := range []string{"cuda", "cublas", "nccl", "nvidia"} {
			if strings.Contains(l, not) {
				t.Errorf("the program does not start without %s", l)
			}
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "cu") {
			t.Errorf("%s is to be found in a library: it is missing in symbols.h", s.Name)
		}
	}

	p, err := cuda.Open()
	lines := strings.Join(cuda.Describe(), "\n")
	if !strings.HasPrefix(lines, "built with CUDA") {
		t.Errorf("Describe says %q", lines)
	}
	switch {
	case err == nil && len(p.Devices()) > 0:
		if !strings.Contains(lines, p.Devices()[0].Name) {
			t.Errorf("Describe does not name the device: %q", lines)
		}
	case err == nil:
		t.Error("a platform without devices")
	case p != nil || !errors.Is(err, gpu.WrongDriver):
		t.Errorf("Open returns %v, %v", p, err)
	case !strings.Contains(lines, "there are no devices: "):
		t.Errorf("Describe says %q", lines)
	default:
		t.Log(err)
	}
}
