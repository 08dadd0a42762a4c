package kernels

import (
	"aibox/gpu"
	"aibox/internal/splitmix"
)

var (
	kernelAdd          = declare("add", "ui ri ii")
	kernelSum          = declare("sum", "wi ri ri ii")
	kernelMultiply     = declare("multiply", "wi ri ri ii")
	kernelMultiplyRows = declare("multiply_rows", "wi ri ri ii")
	kernelCrossMatrix  = declare("cross_matrix", "wi ri ri ri ii")
	kernelCrossColumn  = declare("cross_column", "wi ri ri ri ri ii")
	kernelScaleVectors = declare("scale_vectors", "wi ri ri iii")
	kernelDropout      = declare("dropout", "wi ri rlllf ii")
)

// Sum computes the sum of matrices of the size of y, added from first to last. There is at least
// one.
func (k *Set) Sum(s gpu.Stream, y Matrix, terms []Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	g := elements(rows, y.Columns)
	if len(terms) == 1 {
		return k.Copy(s, y, terms[0], rows)
	}
	k.with().writes(y, rows).reads(terms[0], rows).reads(terms[1], rows).ints(rows, y.Columns)
	if err := k.launch(s, kernelSum, g); err != nil {
		return err
	}
	for _, x := range terms[2:] {
		if err := k.Add(s, y, x, rows); err != nil {
			return err
		}
	}
	return nil
}

// Add computes y = y + x in place.
func (k *Set) Add(s gpu.Stream, y, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().updates(y, rows).reads(x, rows).ints(rows, y.Columns)
	return k.launch(s, kernelAdd, elements(rows, y.Columns))
}

// Multiply computes z = x·y element by element, where y has as many columns as x; if it has
// one column, that multiplies all columns of x.
func (k *Set) Multiply(s gpu.Stream, z, x, y Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	n := kernelMultiply
	if y.Columns != z.Columns {
		n = kernelMultiplyRows
	}
	k.with().writes(z, rows).reads(x, rows).reads(y, rows).ints(rows, z.Columns)
	return k.launch(s, n, elements(rows, z.Columns))
}

// Cross computes a layer of a cross network, y = x0 ⊙ z + bias + xl, each operation rounded. If z
// has as many columns as y there is no bias, which lies in z; otherwise z has one column, and the
// bias (1 row) may be left out.
func (k *Set) Cross(s gpu.Stream, y, x0, z, xl, bias Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x0, rows).reads(z, rows).reads(xl, rows)
	if z.Columns == y.Columns {
		k.ints(rows, y.Columns)
		return k.launch(s, kernelCrossMatrix, elements(rows, y.Columns))
	}
	k.perhaps(bias, 1, xl).ints(rows, y.Columns)
	return k.launch(s, kernelCrossColumn, elements(rows, y.Columns))
}

// ScaleVectors multiplies each vector of dim numbers of v, which has one row, by its number in
// the row of x.
func (k *Set) ScaleVectors(s gpu.Stream, y, x, v Matrix, dim, rows int) error {
	v.Stride = 0
	return k.scaleVectors(s, y, x, v, 1, dim, rows)
}

// ScaleVectorsGrad multiplies each vector of a row of dy by its number in the row of x.
func (k *Set) ScaleVectorsGrad(s gpu.Stream, y, x, dy Matrix, dim, rows int) error {
	return k.scaleVectors(s, y, x, dy, rows, dim, rows)
}

func (k *Set) scaleVectors(s gpu.Stream, y, x, v Matrix, vrows, dim, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).reads(v, vrows).ints(rows, y.Columns, dim)
	return k.launch(s, kernelScaleVectors, elements(rows, y.Columns))
}

// Dropout is which elements a layer of dropout drops: see ops.Dropout.
type Dropout struct {
	Probability float64
	Seed        uint64
	Layer       int
}

// Dropout sets elements of x to zero or multiplies them by 1/(1-probability). A hash of seed,
// layer, step and the number of the element in the whole mini-batch decides which; the first row of
// x is example first of the mini-batch. step is 8 bytes of device memory, the number of the step.
func (k *Set) Dropout(s gpu.Stream, d Dropout, y, x Matrix, step gpu.Region, first, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).add(gpu.Read(step),
		gpu.Int64(int64(splitmix.Next(splitmix.Next(d.Seed)+uint64(d.Layer)))),
		gpu.Int64(int64(first)*int64(y.Columns)),
		gpu.Int64(int64(d.Probability*(1<<32))),
		gpu.Float32(float32(1/(1-d.Probability)))).ints(rows, y.Columns)
	return k.launch(s, kernelDropout, elements(rows, y.Columns))
}
