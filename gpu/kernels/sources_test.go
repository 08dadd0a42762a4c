package kernels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kerneltest"
	"aibox/gpu/kernels/shim"
	"aibox/gpu/kernels/twin"
	"aibox/internal/testseed"
)

// The sources, compiled for the CPU, compute what the steps mean, and the same bits as the twins.
func TestSources(t *testing.T) {
	kerneltest.Run(t, testseed.Of(t), onEmulated("twin", twin.Images()), onEmulated("source", shim.Images(t)))
}

// All PTX was made of the sources that lie beside it, also that of the kernels of package cuda and
// of the tests of devices.
func TestPTXIsOfTheSources(t *testing.T) {
	for _, of := range []struct{ ptx, headers, sources, target string }{
		{"aibox.ptx", "*.h", "*.cu", "kernels"},
		{"../cuda/sum.ptx", "", "../cuda/sum.cu", "gputest-kernels"},
		{"../gputest/kernels.ptx", "", "../gputest/kernels.cu", "gputest-kernels"},
	} {
		h := sha256.New()
		for _, pattern := range []string{of.headers, of.sources} {
			files, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = h.Write(data)
			}
		}
		code, err := os.ReadFile(of.ptx)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(code), "\n")
		if want := "// sources " + hex.EncodeToString(h.Sum(nil)); first != want {
			t.Errorf("%s begins with %q, its sources have %q: run make %s", of.ptx, first, want, of.target)
		}
	}
}

// The PTX is for devices from sm_70 on, in a version of the language that the drivers of CUDA 11.0
// read, fuses only what the sources fuse, and has the kernels that Go launches.
func TestPTX(t *testing.T) {
	code := string(kernels.Image().Code)
	for _, line := range []string{".version 7.0", ".target sm_70", ".address_size 64"} {
		if !strings.Contains(code, "\n"+line+"\n") {
			t.Errorf("aibox.ptx has no line %q", line)
		}
	}
	// Drivers fuse operations that do not say how they round. Double precision is fused nowhere,
	// and atomic sums of floats have no order.
	for _, fault := range []string{`\b(add|sub|mul|mad|fma|div|rcp|sqrt)\.f(32|64)`, `\bfma\.rn\.f64`, `\.ftz`, `\.approx`, `\.full`, `\b(atom|red)\.\S*f(16|32|64)`} {
		if at := regexp.MustCompile(fault).FindString(code); at != "" {
			t.Errorf("aibox.ptx has %q, so that other devices may compute other bits", at)
		}
	}
	var have []string
	for _, m := range regexp.MustCompile(`\.entry (\w+)\(`).FindAllStringSubmatch(code, -1) {
		have = append(have, m[1])
	}
	want := kernels.Names()
	slices.Sort(have)
	slices.Sort(want)
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("aibox.ptx has kernels %q, Go launches %q", have, want)
	}
}
