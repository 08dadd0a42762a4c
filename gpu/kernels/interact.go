package kernels

import (
	"aibox/gpu"
	"aibox/internal/kernel"
)

var (
	kernelInteract          = declare("interact", "wi ri iiiii")
	kernelInteractBF16      = declare("interact_bf16", "wi ri iiiiii")
	kernelInteractGrad      = declare("interact_grad", "wi ri ri iiiii")
	kernelInteractGradFirst = declare("interact_grad_first", "wi wi wi ri ri ri iiiiiii")
)

const (
	// mostShared is the maximum shared memory of a block, in bytes. Every device has that much.
	mostShared = 48 << 10
	// blockExamples is the maximum number of examples of a block. interact_grad has registers for
	// that many. With more, a block would take so much shared memory that part of a
	// multiprocessor's would stay unused.
	blockExamples = 4
	// tileSide is the side of the tile of pairs that a thread of interact computes, in vectors.
	tileSide = 7
	// leastThreads is the minimum number of threads per example of interact; together they copy its
	// vectors.
	leastThreads, warp = 8, 32
	// tileThreads is the maximum number of threads of a block of these kernels.
	tileThreads = 128
	// interactFew is the number of vectors for which a thread of interact_grad has registers.
	// fewThreads is the number of threads of its blocks in that case, unless an example needs more.
	interactFew, fewThreads = 28, 64
)

// examples returns the geometry of a kernel with one thread per tile of an example, up to the limit
// of a block, and the number of elements of shared memory per example: size, or 0 if a block does
// not have that many.
func examples(rows, tiles, size int) (g gpu.Geometry, each int) {
	threads := 8
	for threads < min(tiles, tileThreads) {
		threads *= 2
	}
	n := min(blockExamples, tileThreads/threads, mostShared/(4*size))
	if n == 0 {
		n, threads, size = 1, tileThreads, 0
	}
	grid, block := gpu.Dim{X: (rows + n - 1) / n}, gpu.Dim{X: threads, Y: n}
	return gpu.Geometry{Grid: grid, Block: block, SharedBytes: 4 * n * size}, size
}

// Interact computes the dot products of all pairs of vectors in each row of x, which consists of
// vectors of dim numbers. The pairs are in the order (1,0), (2,0), (2,1), (3,0), …, and each is
// computed as by kernel.Scratch.Interact.
func (k *Set) Interact(s gpu.Stream, y, x Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	g, distance, size := pairExamples(rows, f, dim, kernel.Pairs(f))
	k.with().writes(y, rows).reads(x, rows).ints(rows, f, dim, distance, size)
	return k.launch(s, kernelInteract, g)
}

// InteractBF16 is Interact for a result that is needed only in bfloat16, rounded as by ToBF16.
// Columns of y after the pairs become 0.
func (k *Set) InteractBF16(s gpu.Stream, y Half, x Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	g, distance, size := pairExamples(rows, f, dim, y.Columns)
	k.with().add(gpu.Write(y.Region(rows))).ints(y.Stride).reads(x, rows).ints(rows, f, dim, distance, size, y.Columns)
	return k.launch(s, kernelInteractBF16, g)
}

// pairExamples returns the geometry of Interact for f vectors of dim numbers: a thread for each
// tile of an example, and as many examples per block as a warp has threads for. size is the number
// of elements of shared memory per example, or 0 if a block does not have that many. They first
// hold the example's vectors: a vector is stored in groups of four elements, distance groups apart.
// Then they hold its results, of the given number of columns.
func pairExamples(rows, f, dim, columns int) (g gpu.Geometry, distance, size int) {
	sides := (f + tileSide - 1) / tileSide
	tiles := sides * (sides + 1) / 2
	// Simultaneous accesses of threads, to one example or to two, are spread over as many banks as
	// possible.
	distance = sides*tileSide | 1
	size = (4*max(quarter(dim)*distance, quarter(columns))+15)/32*32 + 16
	threads := max(leastThreads, tiles)
	n := min(max(1, warp/threads), mostShared/(4*size))
	if n == 0 || threads > tileThreads {
		n, threads, size = 1, tileThreads, 0
	}
	return gpu.Geometry{Grid: gpu.Dim{X: (rows + n - 1) / n}, Block: gpu.Dim{X: threads, Y: n}, SharedBytes: 4 * n * size}, distance, size
}

// InteractGrad is the derivative of Interact: the gradient of a vector is the sum of all other
// vectors, each times the gradient of its pair with the vector, as computed by
// kernel.Scratch.InteractBackward.
func (k *Set) InteractGrad(s gpu.Stream, dx, x, dy Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	g, distance, size := gradientExamples(rows, f, dim)
	k.with().writes(dx, rows).reads(x, rows).reads(dy, rows).ints(rows, f, dim, distance, size)
	return k.launch(s, kernelInteractGrad, g)
}

// FirstVector says what InteractGradFirst does with the gradient of the first vector of each row.
type FirstVector struct {
	Activation Activation // whose result the vector is
	Others     Matrix     // other gradients of the vector
	Gradient   Matrix     // result, for the activation's input: that of the pairs plus the others, times the derivative
	Half       Half       // the same, rounded as by ToBF16; columns after the vector become 0. It may be left out
}

// InteractGradFirst is InteractGrad, except for the first vector of each row, for which dx has no
// columns. Its gradient is added to first.Others, goes through the derivative of an activation, and
// is written to first.
func (k *Set) InteractGradFirst(s gpu.Stream, dx Matrix, first FirstVector, x, dy Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	f := x.Columns / dim
	g, distance, size := gradientExamples(rows, f, dim)
	half := none(x.Region(rows))
	if first.Half.Memory != nil {
		half = first.Half.Region(rows)
	}
	k.with().writes(dx, rows).writes(first.Gradient, rows).add(gpu.Write(half)).ints(first.Half.Stride).reads(x, rows).reads(dy, rows)
	k.reads(first.Others, rows).ints(rows, f, dim, distance, size, first.Half.Columns, int(first.Activation))
	return k.launch(s, kernelInteractGradFirst, g)
}

// gradientExamples is examples for InteractGrad with f vectors of dim numbers. It also returns the
// distance between rows of the square of gradients, in elements; it is 0 if each thread holds one
// element of all vectors, in registers.
func gradientExamples(rows, f, dim int) (g gpu.Geometry, distance, each int) {
	if f <= interactFew && dim <= tileThreads {
		size := 4*quarter(kernel.Pairs(f)) + 4
		n := min(max(1, fewThreads/dim), mostShared/(4*size))
		return gpu.Geometry{Grid: gpu.Dim{X: (rows + n - 1) / n}, Block: gpu.Dim{X: dim, Y: n}, SharedBytes: 4 * n * size}, 0, size
	}
	// Gradients are written to rows and columns of a square. With an odd number of fours in a row,
	// those of a column are spread over as many banks as possible.
	distance = 4 * (quarter(f) | 1)
	g, each = examples(rows, (f+15)/16*2*quarter(dim), f*(distance+4*quarter(dim)))
	return g, distance, each
}

// quarter is the number of groups of four that n elements take.
func quarter(n int) int { return (n + 3) / 4 }
