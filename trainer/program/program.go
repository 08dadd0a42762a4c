package program

import "aibox/trainer/ops"

// Rows says what a row of a buffer belongs to.
type Rows uint8

const (
	Examples Rows = iota // one row for each example
	Unique               // one row for each unique row of the mini-batch
	Fixed                // Buffer.Count rows
)

// Scope says how long the contents of an inner buffer are needed.
type Scope uint8

const (
	Tile  Scope = iota // while a tile of examples is in one stage
	Block              // while a block of examples is in all stages
	Batch              // until the next mini-batch
)

// Source says where the memory of a buffer comes from.
type Source uint8

const (
	Inner     Source = iota // memory of the executor
	Dense                   // dense features of the mini-batch
	Labels                  // (N, 1)
	Weights                 // (N, 1), of the examples
	TableRows               // values of the mini-batch's unique rows (U, RowDim)
	Bags                    // offsets, index and weights of the bags; not a matrix
	Clock                   // number of the optimizer step; not a matrix
	One                     // the gradient of the loss with regard to itself; not a matrix
	Param                   // parameter Index of the network
	Gradient                // gradient of parameter Index
	Running                 // running statistics (2, C) of normalization Index
)

// Buffer is a matrix in memory.
type Buffer struct {
	Source  Source
	Index   int // of the parameter or normalization
	Rows    Rows
	Count   int // rows, if Rows is Fixed
	Columns int

	// For an inner buffer of examples:
	Scope  Scope
	Stride int // elements from one row to the next, in all buffers
	Slot   int // for scope Tile: index in Program.Slots
}

// Value is columns [Column, Column+Columns) of a buffer.
type Value struct{ Buffer, Column, Columns int }

// Overlaps reports whether two values have some columns in common.
func (v Value) Overlaps(o Value) bool {
	return v.Buffer == o.Buffer && v.Column < o.Column+o.Columns && o.Column < v.Column+v.Columns
}

// Step is one step of a program.
type Step struct {
	ops.Attributes
	// In are the operands of the op. A product without TransA (KindMatMul) may have a third one, y:
	// its result is then multiplied by the derivative of Activation at the point where its result
	// was y.
	In []Value
	// Out is one value, except for a product xᵀ·dz (KindMatMul with TransA), which may have a
	// second one: the column sums of dz, which are the gradient of the layer's bias.
	Out []Value
}

// KindCopy is a step that copies its operand into a concatenation, if it could not be computed
// there.
const KindCopy ops.Kind = 0

// Stage is Steps[First:End], which are either all row-wise or all reductions.
type Stage struct {
	RowWise    bool
	First, End int
}

// Program is a network in the form that engines run.
type Program struct {
	Buffers []Buffer
	Steps   []Step // the first one pools bags, so that an executor may do that before it runs the others
	Stages  []Stage
	Slots   []int // size of each slot that buffers of scope Tile share, in elements per example

	// Blocks says that the stages may run over one block of examples after the other.
	Blocks bool

	Logits Value
	// The rest is for training only.
	Terms  Value   // (N, 1): the negative log-likelihood of each example, without its weight
	Pooled Value   // (N, F*RowDim): the gradient of the pooled rows
	Stats  []Value // (2, C): batch statistics of each normalization
}

// Training reports whether the program computes gradients.
func (p *Program) Training() bool { return p.Terms.Columns > 0 }

// rowWise reports whether steps of this kind are row-wise.
func rowWise(s *Step) bool {
	switch s.Kind {
	case ops.KindMatMul:
		return !s.TransA
	case ops.KindColumnSum, ops.KindBatchStats, ops.KindBatchNormGamma, ops.KindBagPoolGrad:
		return false
	}
	return true
}

// Continues reports whether a reduction can be computed over blocks of examples, each block adding
// to the result of the one before. Such reductions read only rows of examples, so those of a stage
// do not depend on one another.
func (s *Step) Continues() bool { return s.Kind == ops.KindMatMul || s.Kind == ops.KindColumnSum }
