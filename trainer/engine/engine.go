package engine

import (
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/program"
)

// Engine trains and applies one network. One goroutine uses it.
type Engine interface {
	// Begin starts a pass. If one was announced, it is this one. After an error there is no End,
	// and Ended is not called.
	Begin(p Pass) error
	// Announce says during a pass which one will begin after it. The engine may read its rows, which must
	// stay as they are but for the changes of the present pass, until Begin or Withdraw. An error
	// is one of the present pass.
	Announce(next Pass) error
	// Withdraw says that the announced pass will not begin, which ends all use of its rows.
	Withdraw()
	// Train takes one optimizer step on a mini-batch of the pass.
	Train(b Batch, done Done) error
	// Infer computes the logits of a mini-batch of the pass. Rows that were never
	// trained, or have not occurred often enough, count as zeros.
	Infer(b Batch, done Done) error
	// End delivers all results that are still missing and puts the changes of the pass
	// into its rows. If another pass was announced, a later call may do that, until which the rows belong to
	// the engine; Ended tells when. It has to be called after each Begin; after an error, it
	// only waits until the engine no longer uses the rows.
	End() error

	// Check reports parameters that the last update has made infinite or NaN.
	Check() error
	// Export, between two passes, brings the state of the engine into its State, and what it still
	// has of passes into their rows; the caller may then read it until the next call of the engine.
	// Import takes the state over from there.
	Export() error
	Import() error

	// MemoryBytes is the host memory that the engine takes at present, without the state.
	MemoryBytes() int64
}

// Pass is the working set of some mini-batches.
type Pass struct {
	Keys []uint64 // of its rows, in their order
	Rows *sparsetable.WorkingSet
	// Batches, if not nil, are its mini-batches, so that an engine can tell beforehand what memory they need.
	Batches []reader.Batch
	// Ended, if not nil, is called once, by a call of the engine, when it does not use keys and
	// rows any more. All changes are in the rows then, unless a call has failed.
	Ended func()
}

// HasEnded calls Ended.
func (p *Pass) HasEnded() {
	if ended := p.Ended; ended != nil {
		p.Ended = nil
		ended()
	}
}

// Batch is a mini-batch, for training with its inverted index.
type Batch struct{ *reader.Batch }

// Inputs are the batch as those of a program in a step, with the values of its rows.
func (b *Batch) Inputs(rows []float32, step int64) program.Inputs {
	return program.Inputs{
		N: b.N, Rows: rows, Offsets: b.Offsets, Index: b.Index, BagWeights: b.BagWeights,
		RowStarts: b.RowStarts, RowBags: b.RowBags, RowWeights: b.RowWeights,
		Dense: b.Dense, Labels: b.Labels, Weights: b.Weights, Step: step, Made: b.Made(),
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
