package cuda

import (
	"errors"
	"strings"
	"testing"

	"aibox/gpu"
	"aibox/gpu/gputest"
	"aibox/gpu/kernels"
)

func TestCheckParams(t *testing.T) {
	image := gputest.Image()
	if err := checkParams(image, parameters(image.Code)); err != nil {
		t.Error(err)
	}
	if err := checkParams(sumImage(), parameters(sumCode)); err != nil {
		t.Error(err)
	}
	training := kernels.Image()
	if err := checkParams(training, parameters(training.Code)); err != nil || len(training.Params) != len(kernels.Names()) {
		t.Errorf("%d kernels with parameters of %d: %v", len(training.Params), len(kernels.Names()), err)
	}
	for _, c := range []struct {
		kernel string
		params []gpu.ArgKind
		reason string
	}{
		{"affine", []gpu.ArgKind{gpu.UpdateArg, gpu.ReadArg, gpu.Float32Arg}, "[64 64 32 32] bits in its code, and of [64 64 32] in"},
		{"affine", []gpu.ArgKind{gpu.UpdateArg, gpu.ReadArg, gpu.Float32Arg, gpu.Int64Arg}, "[64 64 32 32] bits in its code, and of [64 64 32 64] in"},
		{"place", []gpu.ArgKind{}, "[64] bits in its code, and of [] in"},
		{"trap", []gpu.ArgKind{gpu.Int32Arg}, "[] bits in its code, and of [32] in"},
		{"nothing", nil, `has no kernel "nothing"`},
	} {
		wrong := image
		wrong.Params = map[string][]gpu.ArgKind{c.kernel: c.params}
		if err := checkParams(wrong, parameters(wrong.Code)); !errors.Is(err, gpu.InvalidArgument) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s %v: %v, want %q", c.kernel, c.params, err, c.reason)
		}
	}
	// Parameters that no argument can be: those of a struct, and a short number.
	for _, p := range []string{".param .align 8 .b8 k_param_0[16]", ".param .u8 k_param_0"} {
		code := ".version 7.8\n.visible .entry k(\n\t" + p + "\n)\n{}\n"
		if err := checkParams(gpu.Image{Params: map[string][]gpu.ArgKind{"k": {gpu.Int64Arg}}}, parameters([]byte(code))); !errors.Is(err, gpu.InvalidArgument) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if err := checkParams(image, parameters([]byte("\x7fELF.version"))); err != nil {
		t.Errorf("code that is no PTX: %v", err)
	}
}
