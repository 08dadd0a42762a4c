package twin

import (
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
)

// Kernels are the twins of all kernels, by name.
var Kernels = emulated.Kernels{}

// Images is Kernels for emulated.Options.
func Images() map[string]emulated.Kernels {
	return map[string]emulated.Kernels{kernels.Image().Name: Kernels}
}

// add puts the twins of a file into Kernels, with the parameters of the kernels. Its result means
// nothing: a declaration needs one.
var add = func(all emulated.Kernels) bool {
	for name, k := range all {
		k.Params = kernels.Image().Params[name]
		Kernels[name] = k
	}
	return true
}

// matrix is an argument that is a matrix. A vector is a matrix of one row.
type matrix struct {
	data   []float32
	stride int
}

// at returns the matrix whose rows are argument i and whose stride is the next one.
func at(b *emulated.Block, i int) matrix {
	return matrix{emulated.Slice[float32](b, i), b.Int32(i + 1)}
}

// row returns row i, with all that follows it.
func (m matrix) row(i int) []float32 { return m.data[i*m.stride:] }

// elements calls f for the row and the column of each element that a thread of the block works on, where
// thread t of the launch works on element t of a matrix.
func elements(b *emulated.Block, rows, columns int, f func(i, j int)) {
	lo, hi := b.Linear()
	for t := lo; t < min(hi, rows*columns); t++ {
		f(t/columns, t%columns)
	}
}

// elementsAtOnce is elements where a thread works on n columns that follow one another.
func elementsAtOnce(b *emulated.Block, rows, columns, n int, f func(i, j int)) {
	elements(b, rows, columns/n, func(i, j int) {
		for h := range n {
			f(i, j*n+h)
		}
	})
}
