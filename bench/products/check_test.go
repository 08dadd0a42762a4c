// Package products has no Go code but the test of product.cuh: see README.md.
package products

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"aibox/internal/testtools"
)

// TestOnCPU: product.cuh, run on the CPU, computes products, their derivatives and the sums of
// columns, whatever the sizes are.
func TestOnCPU(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		testtools.Unavailable(t, "", "g++ is not installed")
	}
	shim := filepath.Join("..", "..", "gpu", "kernels", "shim", "host")
	for _, source := range []string{"check.cu", "product.cuh", filepath.Join(shim, "cuda.h")} {
		if _, err := os.Stat(source); err != nil { // go test sees then whether it has changed
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "check")
	build := exec.Command(compiler, "-x", "c++", "-std=c++17", "-O2", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unknown-pragmas", "-Wno-parentheses",
		"-ffp-contract=off", "-fsanitize=alignment", "-fno-sanitize-recover=alignment", "-I", shim, "-o", program, "check.cu")
	for _, c := range []*exec.Cmd{build, exec.Command(program)} {
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
}
