package kernels

import "aibox/gpu"

var (
	kernelRowSum = declare("row_sum", "wi ri ii")
	kernelRowDot = declare("row_dot", "wi ri ri ii")
	kernelFM     = declare("fm", "wi ri iii")
	kernelFMGrad = declare("fm_grad", "wi ri ri iii")
)

// RowSum sums up the rows of x, in the order of kernel.Sum. y has one column.
func (k *Set) RowSum(s gpu.Stream, y, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, x.Columns)
	return k.launch(s, kernelRowSum, rowGroups(rows))
}

// RowDot computes the dot products of the rows of x and y, in the order of kernel.Dot. z has one column.
func (k *Set) RowDot(s gpu.Stream, z, x, y Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(z, rows).reads(x, rows).reads(y, rows).ints(rows, x.Columns)
	return k.launch(s, kernelRowDot, rowGroups(rows))
}

// FM sums up the dot products of all pairs of the vectors of dim numbers of each row of x:
// ½·Σ v·(Σ v − v). For each of the dim places one chain goes over the vectors; their results are
// added in the order of kernel.Sum. y has one column.
func (k *Set) FM(s gpu.Stream, y, x Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, x.Columns, dim)
	return k.launch(s, kernelFM, rowGroups(rows))
}

// FMGrad is the derivative of FM, dx = dy·(Σ v − v), where dy has one column.
func (k *Set) FMGrad(s gpu.Stream, dx, x, dy Matrix, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(dx, rows).reads(x, rows).reads(dy, rows).ints(rows, x.Columns, dim)
	return k.launch(s, kernelFMGrad, elements(rows, dim))
}
