package kernels

import "aibox/gpu"

var (
	kernelToBF16 = declare("to_bf16", "wi ri iiii")
	kernelFinite = declare("check_finite", "u ri ii")
)

// ToBF16 rounds x to bfloat16, to nearest, ties to even, denormal numbers to zero, as
// kernel.RoundBF16 does. Columns of y that x does not have become 0.
func (k *Set) ToBF16(s gpu.Stream, y Half, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().add(gpu.Write(y.Region(rows))).ints(y.Stride).reads(x, rows).ints(rows, y.Columns, x.Columns)
	each := 1
	if y.Offset%8 == 0 {
		each = atOnce([]int{y.Columns, y.Stride, x.Columns, x.Stride}, x.Region(rows))
	}
	return k.ints(each).launch(s, kernelToBF16, elements(rows, y.Columns/each))
}

// Finite sets the flag, 4 bytes of device memory, to 1 if an element of x is infinite or NaN. Otherwise
// it leaves it as it is.
func (k *Set) Finite(s gpu.Stream, flag gpu.Region, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().add(gpu.Update(flag)).reads(x, rows).ints(rows, x.Columns)
	return k.launch(s, kernelFinite, elements(rows, x.Columns))
}
