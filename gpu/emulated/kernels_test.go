package emulated_test

import (
	"math"

	"aibox/gpu"
	"aibox/gpu/emulated"
)

const (
	in     = gpu.ReadArg
	out    = gpu.WriteArg
	inOut  = gpu.UpdateArg
	number = gpu.Int32Arg
)

// images are the kernels of gputest/kernels.go, and some that are wrong.
var images = map[string]emulated.Kernels{"gputest": {
	"affine": {Params: []gpu.ArgKind{inOut, in, gpu.Float32Arg, number}, Run: func(b *emulated.Block) {
		y, x, a := emulated.Slice[float32](b, 0), emulated.Slice[float32](b, 1), b.Float32(2)
		lo, hi := b.Linear()
		for i := lo; i < min(hi, b.Int32(3)); i++ {
			y[i] += float32(a * x[i])
		}
	}},
	"gather": {Params: []gpu.ArgKind{out, in, in, number, number, number}, Run: func(b *emulated.Block) {
		to, table, index := emulated.Slice[float32](b, 0), emulated.Slice[float32](b, 1), emulated.Slice[int32](b, 2)
		dim, pitch := b.Int32(3), b.Int32(4)
		lo, hi := b.Linear()
		for i := lo; i < min(hi, b.Int32(5)); i++ {
			copy(to[i*pitch:][:dim], table[int(index[i])*dim:])
		}
	}},
	"place": {Params: []gpu.ArgKind{out}, Run: func(b *emulated.Block) {
		n := b.Geometry.Block.Count()
		block := b.Index.X + max(b.Grid.X, 1)*(b.Index.Y+max(b.Grid.Y, 1)*b.Index.Z)
		for t := range n {
			emulated.Slice[int32](b, 0)[block*n+t] = int32(block*n + t)
		}
	}},
	"arguments": {Params: []gpu.ArgKind{out, number, gpu.Int64Arg, gpu.Float32Arg}, Run: func(b *emulated.Block) {
		words := emulated.Slice[uint32](b, 0)
		words[0], words[1], words[2] = uint32(b.Int32(1)), uint32(b.Int64(2)), uint32(b.Int64(2)>>32)
		words[3] = math.Float32bits(b.Float32(3))
	}},
	"trap": {Run: func(*emulated.Block) { panic("trap") }},

	// y = 3y + x, where y are rows and x is one; for the random programs.
	"mix": {Params: []gpu.ArgKind{inOut, in, number, number, number}, Run: func(b *emulated.Block) {
		y, x := emulated.Slice[float32](b, 0), emulated.Slice[float32](b, 1)
		lo, hi := b.Linear()
		for i := lo; i < min(hi, b.Int32(2)*b.Int32(3)); i++ {
			at := i/b.Int32(3)*b.Int32(4) + i%b.Int32(3)
			y[at] = float32(3*y[at]) + x[i]
		}
	}},
	// writes argument 1 at an index of argument 0, which it declares in another way than it uses it
	"poke read":   {Params: []gpu.ArgKind{in, number}, Run: poke},
	"poke update": {Params: []gpu.ArgKind{inOut, number}, Run: poke},
	"poke write":  {Params: []gpu.ArgKind{out, number}, Run: poke},
	"poke far":    {Params: []gpu.ArgKind{inOut, number}, Run: pokeFar},
	// counts up the first element in each block, as no two blocks of a device could
	"chain": {Params: []gpu.ArgKind{inOut}, Run: func(b *emulated.Block) {
		x := emulated.Slice[uint32](b, 0)
		x[b.Index.X+1] = x[b.Index.X] + 1
	}},
}}

func poke(b *emulated.Block) { emulated.Slice[uint32](b, 0)[b.Int32(1)] = 7 }

// pokeFar reaches behind what it was given, as the address arithmetic of a device does.
func pokeFar(b *emulated.Block) {
	x := emulated.Slice[uint32](b, 0)
	emulated.Beyond(x)[b.Int32(1)] = 7
}
