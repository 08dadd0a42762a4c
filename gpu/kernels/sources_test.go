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

// The PTX that is embedded was made of the sources.
func TestPTXIsOfTheSources(t *testing.T) {
	headers, err := filepath.Glob("*.h")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.cu")
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, f := range slices.Concat(headers, sources) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = h.Write(data)
	}
	first, _, _ := strings.Cut(string(kernels.Image().Code), "\n")
	if want := "// sources " + hex.EncodeToString(h.Sum(nil)); first != want {
		t.Errorf("aibox.ptx begins with %q, its sources have %q: run make kernels", first, want)
	}
}

// The PTX is for devices from sm_70 on, in a version of the language that the drivers of CUDA 11.0 read, fuses
// only what the sources fuse, and has the kernels that Go launches.
func TestPTX(t *testing.T) {
	code := string(kernels.Image().Code)
	for _, line := range []string{".version 7.0", ".target sm_70", ".address_size 64"} {
		if !strings.Contains(code, "\n"+line+"\n") {
			t.Errorf("aibox.ptx has no line %q", line)
		}
	}
	// Drivers fuse operations that do not say how they round. Double precision is fused nowhere, and atomic sums
	// of floats have no order.
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
