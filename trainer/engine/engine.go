package engine

import (
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/program"
)

// Engine trains and applies one network. One goroutine uses it.
type Engine interface {
	// Begin starts a pass. Its rows belong to the engine until End.
	Begin(p Pass) error
	// Train takes one optimizer step on a mini-batch of the pass.
	Train(b Batch, done Done) error
	// Infer computes the logits of a mini-batch of the pass. Rows that were never
	// trained, or have not occurred often enough, count as zeros.
	Infer(b Batch, done Done) error
	// End delivers all results that are still missing and puts the changes of the pass
	// into its rows. It has to be called after each Begin; after an error, it
	// only waits until the engine no longer uses the rows.
	End() error

	// Check reports parameters that the last update has made infinite or NaN.
	Check() error
	// Export brings the state of the engine into its State; the caller may then read it
	// until the next call of the engine. Import takes the state over from there.
	Export() error
	Import() error

	// MemoryBytes is the host memory that the engine takes at present, without the state.
	MemoryBytes() int64
}

// Pass is the working set of some mini-batches.
type Pass struct {
	Keys []uint64 // of its rows, in their order
	Rows *sparsetable.WorkingSet
}

// Batch is a mini-batch, or a part of one, for training with its inverted index.
type Batch struct {
	*reader.Batch
	// Total is the number of examples of the whole mini-batch, by which its loss is
	// divided; 0 if this is the whole one.
	Total int
}

// Inputs are the batch as those of a program in a step, with the values of its rows.
func (b *Batch) Inputs(rows []float32, step int64) program.Inputs {
	return program.Inputs{
		N: b.N, Total: b.Total, Rows: rows, Offsets: b.Offsets, Index: b.Index, BagWeights: b.BagWeights,
		RowStarts: b.RowStarts, RowBags: b.RowBags, RowWeights: b.RowWeights,
		Dense: b.Dense, Labels: b.Labels, Weights: b.Weights, Step: step,
	}
}

// Result is what a step has computed.
type Result struct {
	Batch  *reader.Batch
	Step   int64     // number of the optimizer step; for Infer of the last one
	Loss   float64   // of Train: mean over the examples of weight times negative log-likelihood
	Logits []float32 // (N), from before the update; valid until done returns
}

// Done receives results. Its error ends the call that delivers it.
type Done func(*Result) error
