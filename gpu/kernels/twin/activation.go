package twin

import (
	"fmt"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"activate": {Run: func(b *emulated.Block) {
		y, x, a := at(b, 0), at(b, 2), kernels.Activation(b.Int32(6))
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y.row(i)[j] = activated(a, x.row(i)[j])
		})
	}},
	"activate_grad": {Run: func(b *emulated.Block) {
		dx, y, dy, a := at(b, 0), at(b, 2), at(b, 4), kernels.Activation(b.Int32(8))
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			dx.row(i)[j] = derived(a, y.row(i)[j], dy.row(i)[j])
		})
	}},
	"epilogue": {Run: func(b *emulated.Block) {
		y, bias, a := at(b, 0), at(b, 2), kernels.Activation(b.Int32(6))
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			v := y.row(i)[j]
			if bias.stride > 0 {
				v += bias.data[j]
			}
			y.row(i)[j] = activated(a, v)
		})
	}},
	"epilogue_bf16": {Run: func(b *emulated.Block) {
		y, x, bias, a := halfs(b, 0), at(b, 2), at(b, 4), kernels.Activation(b.Int32(8))
		elements(b, b.Int32(6), b.Int32(7), func(i, j int) {
			v := x.row(i)[j]
			if bias.stride > 0 {
				v += bias.data[j]
			}
			y.set(i, j, activated(a, v))
		})
	}},
	"derive": {Run: func(b *emulated.Block) {
		dx, y, a := at(b, 1), at(b, 3), kernels.Activation(b.Int32(7))
		sumChunk(b, b.Int32(5), b.Int32(6), func(i, j int) float64 {
			g := derived(a, y.row(i)[j], dx.row(i)[j])
			dx.row(i)[j] = g
			return float64(g)
		})
	}},
	"derive_bf16": {Run: func(b *emulated.Block) {
		dx, y, a := halfs(b, 1), at(b, 3), kernels.Activation(b.Int32(7))
		deriveHalf(b, 5, dx, func(i, j int) float32 { return derived(a, y.row(i)[j], dx.value(i, j)) })
	}},
	"derive_from_bf16": {Run: func(b *emulated.Block) {
		dx, y, a := halfs(b, 1), halfs(b, 3), kernels.Activation(b.Int32(7))
		deriveHalf(b, 5, dx, func(i, j int) float32 { return derived(a, y.value(i, j), dx.value(i, j)) })
	}},
	"derive_outer": {Run: func(b *emulated.Block) {
		dx, g := at(b, 1), outer(b)
		sumChunk(b, b.Int32(9), b.Int32(10), func(i, j int) float64 {
			dx.row(i)[j] = g(i, j)
			return float64(g(i, j))
		})
	}},
	"derive_outer_bf16": {Run: func(b *emulated.Block) { deriveHalf(b, 9, halfs(b, 1), outer(b)) }},
})

// deriveHalf sets dx to gradients, and leaves their sums; the numbers of rows and columns are
// arguments from size on.
func deriveHalf(b *emulated.Block, size int, dx halfMatrix, gradient func(i, j int) float32) {
	sumChunk(b, b.Int32(size), b.Int32(size+1), func(i, j int) float64 {
		g := gradient(i, j)
		dx.set(i, j, g)
		return float64(g)
	})
}

// outer returns the gradients that derive_outer computes.
func outer(b *emulated.Block) func(i, j int) float32 {
	g, w, y, a := at(b, 3), at(b, 5), at(b, 7), kernels.Activation(b.Int32(11))
	return func(i, j int) float32 { return derived(a, y.row(i)[j], g.row(i)[0]*w.row(j)[0]) }
}

// leak is the slope of LeakyReLU below zero.
const leak = 0.01

func activated(a kernels.Activation, x float32) float32 {
	switch a {
	case kernels.Identity:
	case kernels.ReLU:
		if x < 0 {
			return 0
		}
	case kernels.LeakyReLU:
		if x < 0 {
			return x * leak
		}
	case kernels.Tanh:
		return kernel.Tanh(x)
	case kernels.Sigmoid:
		return kernel.Sigmoid(x)
	default:
		panic(fmt.Sprintf("twin: activation %d", a))
	}
	return x
}

// derived returns dy·a'(x) where y = a(x).
func derived(a kernels.Activation, y, dy float32) float32 {
	switch a {
	case kernels.Identity:
	case kernels.ReLU:
		if !(y > 0) {
			return 0
		}
	case kernels.LeakyReLU:
		if !(y > 0) {
			return dy * leak
		}
	case kernels.Tanh:
		return dy * kernel.FMA(-y, y, 1)
	case kernels.Sigmoid:
		return dy * float32(y*(1-y))
	default:
		panic(fmt.Sprintf("twin: activation %d", a))
	}
	return dy
}
