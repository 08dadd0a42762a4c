package gputest

import (
	_ "embed"

	"aibox/gpu"
)

//go:embed kernels.ptx
var code []byte

// Image returns the kernels of kernels.go, as CUDA has them.
func Image() gpu.Image {
	const (
		in, out, inOut = gpu.ReadArg, gpu.WriteArg, gpu.UpdateArg
		number         = gpu.Int32Arg
	)
	return gpu.Image{Name: "gputest", Code: code, Params: map[string][]gpu.ArgKind{
		kernelAffine:    {inOut, in, gpu.Float32Arg, number},
		kernelGather:    {out, in, in, number, number, number},
		kernelPlace:     {out},
		kernelArguments: {out, number, gpu.Int64Arg, gpu.Float32Arg},
		kernelTrap:      {},
	}}
}
