package kernels

import "aibox/gpu"

var (
	kernelInteract     = declare("interact", "wi ri iii")
	kernelInteractGrad = declare("interact_grad", "wi ri ri iii")
)

// mostShared is the most bytes of shared memory that a block takes. Each device has so many.
const mostShared = 48 << 10

// Interact computes the dot products of all pairs of the vectors of dim numbers of each row of x, in
// the order (1,0), (2,0), (2,1), (3,0), …, each as kernel.Scratch.Interact does.
func (k *Set) Interact(s gpu.Stream, y, x Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	// Vectors in shared memory are an odd number of words apart, so that threads that read
	// several at one place do not read from one bank.
	distance := dim | 1
	g := gpu.Geometry{Grid: gpu.Dim{X: rows}, Block: gpu.Dim{X: blockThreads}, SharedBytes: 4 * f * distance}
	if g.SharedBytes > mostShared {
		g.SharedBytes, distance = 0, 0
	}
	k.with().writes(y, rows).reads(x, rows).ints(f, dim, distance)
	return k.launch(s, kernelInteract, g)
}

// InteractGrad is the derivative of Interact: for each vector the sum of all vectors times the
// gradients of their pairs with it, as kernel.Scratch.InteractBackward has it.
func (k *Set) InteractGrad(s gpu.Stream, dx, x, dy Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	shared := 1
	g := gpu.Geometry{Grid: gpu.Dim{X: rows}, Block: gpu.Dim{X: blockThreads}, SharedBytes: 4 * (x.Columns + dy.Columns)}
	if g.SharedBytes > mostShared {
		g.SharedBytes, shared = 0, 0
	}
	k.with().writes(dx, rows).reads(x, rows).reads(dy, rows).ints(f, dim, shared)
	return k.launch(s, kernelInteractGrad, g)
}
