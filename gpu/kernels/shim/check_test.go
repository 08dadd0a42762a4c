package shim

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
)

// Whatever order threads and blocks run in, each fault is found, with its place, and where there is
// none none is found.
func TestChecks(t *testing.T) {
	source, err := os.ReadFile("testdata/checked.cu")
	if err != nil {
		t.Fatal(err)
	}
	faults, params := map[string]string{}, map[string][]gpu.ArgKind{}
	for _, m := range regexp.MustCompile(`(?:// FOUND: (.*)\n)?KERNEL (\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		faults[m[2]], params[m[2]] = m[1], []gpu.ArgKind{gpu.UpdateArg, gpu.ReadArg}
	}
	params["reads_what_nobody_wrote"][0] = gpu.WriteArg
	images := map[string]emulated.Kernels{"checked": compiled(t, "shim/testdata/checked.cu", params)}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for seed := range uint64(2) {
			p := emulated.New(emulated.Options{Devices: emulated.Devices(1, 1<<20), Images: images, Seed: seed})
			var got string
			if err := launchChecked(p, name, params[name][0]); err != nil {
				got, _, _ = strings.Cut(err.Error(), "\n")
			}
			want := faults[name]
			if (got != "") != (want != "") || !strings.Contains(got, want) {
				t.Errorf("%s, seed %d: found %q, want %q", name, seed, got, want)
			}
		}
	}
}

// launchChecked launches a kernel of testdata/checked.cu.
func launchChecked(p *emulated.Platform, name string, kind gpu.ArgKind) error {
	dev, err := p.Open(0)
	if err != nil {
		return err
	}
	s, err := dev.NewStream("test")
	if err != nil {
		return err
	}
	m, err := dev.Load(gpu.Image{Name: "checked"})
	if err != nil {
		return err
	}
	k, err := m.Kernel(name)
	if err != nil {
		return err
	}
	x, err := dev.Alloc("x", 2048)
	if err != nil {
		return err
	}
	y, err := dev.Alloc("y", 512)
	if err != nil {
		return err
	}
	rows := gpu.Region{Memory: x, Width: 512, Rows: 2, Pitch: 1024}
	if err := s.Fill(rows, 0); err != nil {
		return err
	}
	if err := s.Fill(gpu.All(y), 0); err != nil {
		return err
	}
	g := gpu.Geometry{Grid: gpu.Dim{X: 2}, Block: gpu.Dim{X: 64}, SharedBytes: 256}
	if err := s.Launch(k, g, gpu.Arg{Kind: kind, Region: gpu.All(y)}, gpu.Read(rows)); err != nil {
		return err
	}
	return s.Synchronize()
}
