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
	Inner     Source = iota // the executor's
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
	Slot   int // scope Tile: where it lies, among Program.Slots
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
	// In is the operands of the op. A product without TransA (KindMatMul) may have a third
	// one, y: its result is then multiplied by the derivative of Activation, whose result was y.
	In []Value
	// Out is one value, except for a product xᵀ·dz (KindMatMul with TransA): if there is
	// a second one, it is the column sums of dz, the gradient of the layer's bias.
	Out []Value
}

// KindCopy is a step that copies its operand; it is the part of a concatenation that
// could not be computed in its place.
const KindCopy ops.Kind = 0

// Stage is Steps[First:End], which all work row by row or all are reductions.
type Stage struct {
	RowWise    bool
	First, End int
}

// Program is a network in the form that engines run.
type Program struct {
	Buffers []Buffer
	Steps   []Step // the first one pools bags, so that executors may do so before they run the others
	Stages  []Stage
	Slots   []int // elements for each example of a tile, of the slots that tiles share

	// Blocks says that the stages may run over blocks of examples, one after the other.
	Blocks bool

	Logits Value
	// The rest is for training only.
	Terms  Value   // (N, 1): the negative log-likelihood of each example, without its weight
	Pooled Value   // the gradient of the pooled rows (N, F*RowDim)
	Stats  []Value // (2, C): batch statistics of each normalization
}

// Training says whether the program computes gradients.
func (p *Program) Training() bool { return p.Terms.Columns > 0 }

// rowWise says whether steps of this kind work row by row.
func rowWise(s *Step) bool {
	switch s.Kind {
	case ops.KindMatMul:
		return !s.TransA
	case ops.KindColumnSum, ops.KindBatchStats, ops.KindBatchNormGamma, ops.KindBagPoolGrad:
		return false
	}
	return true
}

// Continues says whether a reduction can be computed over blocks of examples, each of
// which goes on from the result of the one before. Such reductions read nothing but rows of
// examples, so those of a stage do not depend on one another.
func (s *Step) Continues() bool { return s.Kind == ops.KindMatMul || s.Kind == ops.KindColumnSum }
