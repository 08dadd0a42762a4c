package engine

import (
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/program"
)

// Engine trains and applies one network. One goroutine uses it.
type Engine interface {
	// Begin starts a pass: the announced one, if one was announced. After an error, End must not be
	// called, and Ended is not.
	Begin(p Pass) error
	// Announce says during a pass which one begins after it. Until Begin or Withdraw the engine may
	// read its rows, which nobody may change except for the current pass. An error concerns the
	// current pass.
	Announce(next Pass) error
	// Withdraw says that the announced pass will not begin. It ends all use of that pass's rows.
	Withdraw()
	// Train takes one optimizer step on a mini-batch of the pass.
	Train(b Batch, done Done) error
	// Infer computes the logits of a mini-batch of the pass. Rows that were never trained, or whose
	// key has not occurred often enough, count as zeros.
	Infer(b Batch, done Done) error
	// End delivers all outstanding results and writes the changes of the pass into its rows. If
	// another pass was announced, a later call may do that; until then the rows belong to the
	// engine, and Ended says when that is over. End must be called after each successful Begin.
	// After an error, it only waits until the engine no longer uses the rows.
	End() error

	// Check reports parameters that the last update has made infinite or NaN, or whose optimizer
	// has such state.
	Check() error
	// Export, called between two passes, writes the engine's state into its State, and changes of
	// rows that it still holds into the rows. The caller may read both until the next call of the
	// engine. Import reads the state back.
	Export() error
	Import() error

	// MemoryBytes returns the host memory that the engine takes at present, without the state.
	MemoryBytes() int64
}

// Pass is the working set of consecutive mini-batches.
type Pass struct {
	Keys []uint64 // of Rows, in the same order
	Rows *sparsetable.WorkingSet
	// Batches, if not nil, are its mini-batches, from which an engine can tell beforehand how much
	// memory they need.
	Batches []reader.Batch
	// Ended, if not nil, is called once, by a call of the engine, when the engine no longer uses
	// keys and rows. All changes are in the rows then, unless a call has failed.
	Ended func()
}

// HasEnded calls Ended, if it is set, the first time.
func (p *Pass) HasEnded() {
	if ended := p.Ended; ended != nil {
		p.Ended = nil
		ended()
	}
}

// Batch is a mini-batch. For training it has its inverted index.
type Batch struct{ *reader.Batch }

// Inputs returns the batch as the inputs of a program in a step, with the values of its rows.
func (b *Batch) Inputs(rows []float32, step int64) program.Inputs {
	return program.Inputs{
		N: b.N, Rows: rows, Offsets: b.Offsets, Index: b.Index, BagWeights: b.BagWeights,
		RowStarts: b.RowStarts, RowBags: b.RowBags, RowWeights: b.RowWeights,
		Dense: b.Dense, Labels: b.Labels, Weights: b.Weights, Step: step, Made: b.Made(),
	}
}

// Result is the outcome of a step.
type Result struct {
	Batch  *reader.Batch
	Step   int64     // number of the optimizer step; for Infer, that of the last one
	Loss   float64   // of Train: mean over the examples of weight times negative log-likelihood
	Logits []float32 // (N), from before the update; valid until done returns
}

// Done receives results. If it returns an error, the call that delivered the result ends with it.
type Done func(*Result) error
