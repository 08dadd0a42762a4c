package flow

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"aibox/gpu"
	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
)

// Stage names, as in the paper's Table 1.
const (
	StageRead  = "RE"
	StageTable = "ST"
	StageLearn = "EL+JL"
)

// OpenReader opens a reader whose goroutines count as the reading stage in profiles.
func OpenReader(ctx context.Context, o reader.Options) (r *reader.Reader, err error) {
	pprof.Do(ctx, pprof.Labels("stage", StageRead), func(ctx context.Context) { r, err = reader.Open(ctx, o) })
	return r, err
}

// Flow is one run of the three stages over one reading of the data.
type Flow struct {
	Stages
	Reader *reader.Reader
	Mode   sparsetable.PullMode
	Skip   int64 // number of leading mini-batches to leave out
	// Grace, if set, is the context that cancels a pass that has begun. If nil, Run's context does.
	Grace context.Context
	// Batch is stage EL+JL's work on one mini-batch. It may return pipeline.ErrStop.
	Batch func(b *reader.Batch) error
	Hooks
}

// Stages is what all flows of a run share.
type Stages struct {
	Table  sparsetable.Table
	Limit  *Limit        // works on the rows of the passes
	Engine engine.Engine // that works on the rows of the passes
	// Announces says that the engine is told of a pass during the pass before (which waits a little
	// for that at its end), and may use the rows of a pass after End. Hooks.Begins and Hooks.Ends,
	// which look at rows on the host, are not set then.
	Announces bool
	Queues
	Bytes *Gauge // size of the passes between the reader and the end of their training
	// Space, if set, is called with the error when rows cannot be pulled. It reports whether it has
	// made room on a full disk.
	Space  func(cause error) bool
	Ranges gpu.Ranger // marks the stages' work for profilers; may be nil
	Log    *slog.Logger
}

// Hooks are called at certain points of a run. Each may be nil.
type Hooks struct {
	// Started gets the pipeline before it runs, for its statistics.
	Started func(p *pipeline.Pipeline)
	// Yield is called when the table's memory cannot hold a pass. It reports whether it has made
	// room.
	Yield func() bool
	// Begins and Ends are called before the first mini-batch of a pass and after the last one, when
	// nobody changes its rows.
	Begins, Ends func(w Pulled)
	// Begun gets the time that it took until the rows of a pass could be changed.
	Begun func(took time.Duration)
	// PassDone is called after the last mini-batch of a pass, when its rows are released, so a
	// snapshot of the table need not copy them at once.
	PassDone func(p *reader.Pass) error
}

// Run runs the stages until the data end, and returns their statistics.
func (f *Flow) Run(ctx context.Context) ([]pipeline.StageStats, error) {
	if f.Ranges == nil {
		f.Ranges = gpu.RangerOf(nil)
	}
	p := pipeline.New(ctx)
	f.Bytes.now.Store(0)
	var look atomic.Int64 // how many passes after the next one the table wants to have announced
	passes := pipeline.Source(p, StageRead, func(ctx context.Context, emit func(*reader.Pass) error) error {
		return f.read(ctx, &look, emit)
	})
	if f.ReadAheadBytes > 0 {
		passes.RunAhead(pipeline.Ahead[*reader.Pass]{
			Items: func() int { return int(look.Load()) }, MaxItems: maxReadAhead,
			Bytes: f.ReadAheadBytes, Size: (*reader.Pass).MemoryBytes,
		})
	}
	rows := newPuller(&f.Stages, f.Mode, f.Yield)
	ready := pipeline.Map(p, StageTable, passes, f.ReadQueue, rows.pull)
	ready.OnDrop(rows.release)
	pipeline.Sink(p, StageLearn, ready, f.PullQueue, func(ctx context.Context, w Pulled, next pipeline.Next[Pulled]) error {
		return f.work(ctx, w, next, rows)
	}, func(w Pulled) {
		f.Engine.Withdraw()
		rows.release(w)
	})
	if f.Started != nil {
		f.Started(p)
	}
	err := p.Run()
	f.Table.ForgetAnnounced() // passes that were announced but never pulled, because of an error or a stop
	return p.Stats(), err
}

// read is stage RE. It stores in look how many passes the table looks ahead.
func (f *Flow) read(ctx context.Context, look *atomic.Int64, emit func(*reader.Pass) error) error {
	for {
		reading := f.Ranges.StartRange("read")
		pass, err := f.Reader.Next(ctx)
		f.Ranges.EndRange(reading)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n := int64(len(pass.Batches)); n <= f.Skip {
			f.Skip -= n
			pass.Recycle()
			continue
		}
		if f.Skip > 0 {
			pass.Batches, f.Skip = pass.Batches[f.Skip:], 0
			pass = splitPass(pass, math.MaxInt)[0] // removes the keys of the skipped mini-batches
		}
		for _, part := range f.Limit.cut(pass, f.Log) {
			f.Table.Announce(part.Keys)
			look.Store(int64(f.Table.Lookahead(len(part.Keys))))
			f.Bytes.add(part.MemoryBytes())
			if err := emit(part); err != nil {
				return err
			}
		}
	}
}
