package cuda

import (
	_ "embed"

	"aibox/gpu"
)

//go:embed sum.ptx
var sumCode []byte

// sumImage has the kernel "add", which adds an array to another.
func sumImage() gpu.Image {
	return gpu.Image{Name: "sum", Code: sumCode, Params: map[string][]gpu.ArgKind{"add": {gpu.UpdateArg, gpu.ReadArg, gpu.Int32Arg}}}
}
