package program

import (
	"aibox/internal/errkind"
	"aibox/trainer/optim"
)

// ErrNotFinite says that the loss, a logit, a batch statistic or an updated parameter or
// row is NaN or infinite.
var ErrNotFinite = errkind.New(errkind.Diverged, "model: not a finite number")

// Network is all that an engine needs to know of a model.
type Network struct {
	Train, Infer *Program
	Params       []*optim.Param // indexed by Buffer.Index of sources Param and Gradient
	Norms        []Norm         // indexed by Buffer.Index of source Running, and like Program.Stats
	Fields       int
	RowDim       int // values of a row of the table
	Dense        int // dense features
}

// Norm is the running statistics of a batch normalization of C columns.
type Norm struct {
	Mean, Variance *optim.Param // (C)
	Both           []float32    // (2, C), over the same memory
}
