package kernel

import "unsafe"

// tile is one call of a tile kernel: rows x columns elements of C, k steps.
//
//	C[r,j] = C[r,j] + sum over p of A[r,p]·B[p,j]    r < rows, j < columns
//
// A is read element by element with any strides, so that both an ordinary and
// a transposed matrix can be used where they lie; B is read in vectors along j.
// The kernel's name gives the instruction set, the rows and the vectors per
// row. Strides are in bytes.
type tile struct {
	a, b, c    unsafe.Pointer
	k          int     // steps, at least 1
	aRow, aCol uintptr // A[r,p] is at a + r*aRow + p*aCol
	bRow       uintptr // B[p,j] is at b + p*bRow + 4*j
	cRow       uintptr // C[r,j] is at c + r*cRow + 4*j
	lanes      int     // columns in the last vector, at least 1
	fromC      bool    // start the chains from C, not from +0

	// What the kernel does to finished chains, see Epilogue.
	bias   unsafe.Pointer // added to each row, unless nil
	relu   bool           // then negative elements become +0
	out    unsafe.Pointer // then elements become +0 where out is not above 0, unless nil
	outRow uintptr        // element (r,j) of out is at out + r*outRow + 4*j

	// What the highest kernels prefetch after every aheadSteps steps: a line at ahead, then one
	// aheadRow bytes further.
	ahead, aheadRow uintptr

	flush bool // treat denormal numbers as zeros while multiplying
	//lint:ignore U1000 the assembler uses it
	mxcsr uint32 // the kernel's memory for the control word
}

// tileKernel is an entry of a table of kernels.
type tileKernel struct {
	rows int
	full [2]func(*tile) // for 1 and 2 vectors, all lanes
	part [2]func(*tile) // the same with tile.lanes lanes in the last vector
}

// tileSet is what the matrix product needs to know about an instruction set.
type tileSet struct {
	vector  int          // lanes of a vector; a tile is at most 2 vectors wide
	kernels []tileKernel // heights descending; the last is 1
}

func (s *tileSet) rows() int    { return s.kernels[0].rows }
func (s *tileSet) columns() int { return 2 * s.vector }

var tiles512 = tileSet{16, []tileKernel{
	{14, [2]func(*tile){tile512x14x1, tile512x14x2}, [2]func(*tile){tile512x14x1, tile512x14x2}},
	{8, [2]func(*tile){tile512x8x1, tile512x8x2}, [2]func(*tile){tile512x8x1, tile512x8x2}},
	{4, [2]func(*tile){tile512x4x1, tile512x4x2}, [2]func(*tile){tile512x4x1, tile512x4x2}},
	{2, [2]func(*tile){tile512x2x1, tile512x2x2}, [2]func(*tile){tile512x2x1, tile512x2x2}},
	{1, [2]func(*tile){tile512x1x1, tile512x1x2}, [2]func(*tile){tile512x1x1, tile512x1x2}},
}}

// tilesBF16 multiplies words of two bfloat16 each: A and B have one for two steps of k.
var tilesBF16 = tileSet{16, []tileKernel{
	{14, [2]func(*tile){tileBF16x14x1, tileBF16x14x2}, [2]func(*tile){tileBF16x14x1, tileBF16x14x2}},
	{8, [2]func(*tile){tileBF16x8x1, tileBF16x8x2}, [2]func(*tile){tileBF16x8x1, tileBF16x8x2}},
	{4, [2]func(*tile){tileBF16x4x1, tileBF16x4x2}, [2]func(*tile){tileBF16x4x1, tileBF16x4x2}},
	{2, [2]func(*tile){tileBF16x2x1, tileBF16x2x2}, [2]func(*tile){tileBF16x2x1, tileBF16x2x2}},
	{1, [2]func(*tile){tileBF16x1x1, tileBF16x1x2}, [2]func(*tile){tileBF16x1x1, tileBF16x1x2}},
}}

var tiles256 = tileSet{8, []tileKernel{
	{6, [2]func(*tile){tile256x6x1, tile256x6x2}, [2]func(*tile){tile256x6x1masked, tile256x6x2masked}},
	{4, [2]func(*tile){tile256x4x1, tile256x4x2}, [2]func(*tile){tile256x4x1masked, tile256x4x2masked}},
	{2, [2]func(*tile){tile256x2x1, tile256x2x2}, [2]func(*tile){tile256x2x1masked, tile256x2x2masked}},
	{1, [2]func(*tile){tile256x1x1, tile256x1x2}, [2]func(*tile){tile256x1x1masked, tile256x1x2masked}},
}}
