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

	"aibox/configs"
	"aibox/gpu"
	"aibox/internal/process"
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

// maxReadAhead bounds the passes that are read ahead, however small they are.
const maxReadAhead = 256

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
	Skip   int64 // mini-batches that the reader yields first and that are left out
	// Grace, if set, ends a pass that was begun. Without it, that is the context of Run.
	Grace context.Context
	// Batch is stage EL+JL's work on one mini-batch. It may return pipeline.ErrStop.
	Batch func(b *reader.Batch) error
	Hooks
}

// Stages are what all flows of a run go through.
type Stages struct {
	Table  sparsetable.Table
	Limit  *Limit        // of the table
	Engine engine.Engine // that works on the rows of the passes
	// Announces says that the engine is told of a pass during the one before, which waits a little for it before it ends, and may use rows after the end
	// of theirs. Then Begins and Ends, which look at rows of the host, are not set.
	Announces bool
	Queues
	Bytes *Gauge // of the passes between the reader and the end of their training
	// Space, if set, is called with the error when rows cannot be pulled, and reports whether it has made room
	// on a disk that was full.
	Space  func(cause error) bool
	Ranges gpu.Ranger // what the stages do, for profilers; nil: none
	Log    *slog.Logger
}

// Queues say how much may wait between the stages.
type Queues struct {
	ReadQueue, PullQueue int   // passes in front of ST, and of EL+JL
	ReadAheadBytes       int64 // limit on the waiting passes, if the table asks for more of them than ReadQueue
}

// readAheadShare of the memory that is free, by 1, is for passes that the table looks ahead to: the rest of the job, and
// garbage, need more.
const readAheadShare = 8

// QueuesOf are the queues that a job asks for, with passes ahead as there is memory for them now.
func QueuesOf(job *configs.Job) Queues {
	q := Queues{ReadQueue: job.Pipeline.ReadQueue, PullQueue: job.Pipeline.PullQueue, ReadAheadBytes: int64(job.Pipeline.ReadAheadBytes)}
	if free := process.FreeMemory(); free >= 0 {
		q.ReadAheadBytes = min(q.ReadAheadBytes, free/readAheadShare)
	}
	return q
}

// Hooks are called at certain times, each if it is set.
type Hooks struct {
	// Started gets the pipeline before it runs, for its statistics.
	Started func(p *pipeline.Pipeline)
	// Yield is called when the table's memory cannot hold a pass, and reports whether it has made room.
	Yield func() bool
	// Begins and Ends are called before the first mini-batch of a pass, and after the last one, when nobody
	// changes its rows.
	Begins, Ends func(w Pulled)
	// Begun gets the time that the rows of a pass took until they might be changed.
	Begun func(took time.Duration)
	// PassDone is called after a pass's last mini-batch, when its rows are released: a snapshot of the table
	// need not copy them at once.
	PassDone func(p *reader.Pass) error
}

// Run runs the stages until the data ends, and returns their statistics.
func (f *Flow) Run(ctx context.Context) ([]pipeline.StageStats, error) {
	if f.Ranges == nil {
		f.Ranges = gpu.RangerOf(nil)
	}
	p := pipeline.New(ctx)
	f.Bytes.now.Store(0)
	var look atomic.Int64 // how many passes after the next one the table wants to be told of
	passes := pipeline.Source(p, StageRead, func(ctx context.Context, emit func(*reader.Pass) error) error {
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
				pass = splitPass(pass, math.MaxInt)[0] // has no keys but those of its mini-batches
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
	})
	if f.ReadAheadBytes > 0 {
		passes.RunAhead(pipeline.Ahead[*reader.Pass]{
			Items: func() int { return int(look.Load()) }, MaxItems: maxReadAhead,
			Bytes: f.ReadAheadBytes, Size: (*reader.Pass).MemoryBytes,
		})
	}
	rows := newPuller(&f.Stages, f.Mode, f.Yield)
	ready := pipeline.Expand(p, StageTable, passes, f.ReadQueue, rows.pull)
	ready.OnDrop(rows.release)
	pipeline.SinkWithNext(p, StageLearn, ready, f.PullQueue, func(ctx context.Context, w Pulled, next pipeline.Next[Pulled]) error {
		users := 2 // this function, and the engine, which may use the pass for longer
		left := func() {
			if users--; users == 0 {
				f.Bytes.add(-w.Pass.MemoryBytes())
				w.Pass.Recycle()
			}
		}
		defer left()
		if err := f.learn(ctx, w, next, rows.starved, func() {
			rows.release(w)
			left()
		}); err != nil {
			return err
		}
		if f.PassDone != nil {
			return f.PassDone(w.Pass)
		}
		return nil
	}, func(w Pulled) {
		f.Engine.Withdraw()
		rows.release(w)
	})
	if f.Started != nil {
		f.Started(p)
	}
	err := p.Run()
	f.Table.ForgetAnnounced() // passes that were announced but, after an error or a stop, never pulled
	return p.Stats(), err
}

// learn runs the engine over the mini-batches of a pass. release is called when its rows are not used any more; if the
// engine is told of passes beforehand, that can be during the next one. starved is ready if a pass waits for memory of the table.
func (f *Flow) learn(ctx context.Context, w Pulled, next pipeline.Next[Pulled], starved <-chan struct{}, release func()) (err error) {
	name := "evaluate"
	if f.Mode == sparsetable.PullCreate {
		name = "train"
	}
	defer f.Ranges.EndRange(f.Ranges.StartRange(name))
	pass := w.forEngine()
	if f.Announces {
		pass.Ended = release
	} else {
		defer release()
		defer func() { // the rows are not the engine's any more, and still pinned
			if err == nil && f.Ends != nil {
				f.Ends(w)
			}
		}()
	}
	start := time.Now()
	w.Rows.Begin()
	if f.Begun != nil {
		f.Begun(time.Since(start))
	}
	if f.Begins != nil {
		f.Begins(w)
	}
	if err := f.Engine.Begin(pass); err != nil {
		if f.Announces {
			release()
		}
		return err
	}
	// The rows are the engine's until End returns, also after an error.
	defer func() {
		if end := f.Engine.End(); err == nil {
			err = end
		}
	}()
	if f.Grace != nil {
		ctx = f.Grace
	}
	announced := !f.Announces
	announce := func(patience time.Duration) error {
		if announced {
			return nil
		}
		n, ok := next(patience, starved)
		if !ok {
			return nil
		}
		announced = true
		return f.Engine.Announce(n.forEngine())
	}
	for i := range w.Pass.Batches {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := announce(0); err != nil {
			return err
		}
		if err := f.Batch(&w.Pass.Batches[i]); err != nil {
			return err
		}
	}
	return announce(patience)
}

// patience is how long an engine that may be told of the next pass keeps the rows of a pass that was trained where there is none yet: if reading
// is slower, the rows that both have stay on the devices all the same. It bounds what a snapshot may lack.
const patience = time.Second
