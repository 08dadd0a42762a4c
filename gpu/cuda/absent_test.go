//go:build !nvidia || !linux || !amd64

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/cuda"
)

func TestAbsent(t *testing.T) {
	p, err := cuda.OpenWith(cuda.Options{NoEpilogues: true})
	if p != nil || !errors.Is(err, gpu.WrongDriver) || !strings.Contains(err.Error(), "make build-cuda") {
		t.Errorf("Open returns %v, %v", p, err)
	}
	if got := strings.Join(cuda.Describe(), "\n"); got != "built without CUDA" {
		t.Errorf("Describe says %q", got)
	}
}
