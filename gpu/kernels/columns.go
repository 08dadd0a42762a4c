package kernels

import "aibox/gpu"

var (
	kernelCopy    = declare("copy_rows", "wi ri ii")
	kernelColumns = declare("columns", "wi ri ii iii")
	kernelSpread  = declare("spread", "wi ri ii iii")
	kernelRepeat  = declare("repeat", "wi ri ii")
	kernelBias    = declare("bias", "wi ri ii")
	kernelClear   = declare("clear_columns", "wi ii")
)

// Copy computes y = x.
func (k *Set) Copy(s gpu.Stream, y, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, y.Columns)
	return k.launch(s, kernelCopy, elements(rows, y.Columns))
}

// Columns takes columns [lo, hi) of every group of period columns of x.
func (k *Set) Columns(s gpu.Stream, y, x Matrix, period, lo, hi, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, y.Columns, period, lo, hi-lo)
	return k.launch(s, kernelColumns, elements(rows, y.Columns))
}

// Spread puts the columns of dy to the places from which Columns takes them, and zeros to all others.
func (k *Set) Spread(s gpu.Stream, dx, dy Matrix, period, lo, hi, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(dx, rows).reads(dy, rows).ints(rows, dx.Columns, period, lo, hi-lo)
	return k.launch(s, kernelSpread, elements(rows, dx.Columns))
}

// Repeat writes the only column of x to every column of y.
func (k *Set) Repeat(s gpu.Stream, y, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, y.Columns)
	return k.launch(s, kernelRepeat, elements(rows, y.Columns))
}

// Clear writes zeros to all elements of y. Devices fill few columns of many rows slowly.
func (k *Set) Clear(s gpu.Stream, y Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).ints(rows, y.Columns)
	return k.launch(s, kernelClear, elements(rows, y.Columns))
}

// Bias writes the first number of b to every element of y.
func (k *Set) Bias(s gpu.Stream, y, b Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(b.Slice(0, 1), 1).ints(rows, y.Columns)
	return k.launch(s, kernelBias, elements(rows, y.Columns))
}
