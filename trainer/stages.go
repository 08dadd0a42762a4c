package trainer

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
	stageRead  = "RE"
	stageTable = "ST"
	stageLearn = "EL+JL"
)

// maxReadAhead bounds the passes that are read ahead, however small they are.
const maxReadAhead = 256

// openReader opens a reader whose goroutines count as the reading stage in profiles.
func openReader(ctx context.Context, o reader.Options) (r *reader.Reader, err error) {
	pprof.Do(ctx, pprof.Labels("stage", stageRead), func(ctx context.Context) { r, err = reader.Open(ctx, o) })
	return r, err
}

// flow is one run of the three stages over one reading of the data.
type flow struct {
	reader *reader.Reader
	table  sparsetable.Table
	mode   sparsetable.PullMode
	limit  *passLimit // of the table
	bytes  *gauge     // of the passes between the reader and the end of their training
	log    *slog.Logger

	readQueue, pullQueue int
	readAheadBytes       int64 // limit on the waiting passes, if the table asks for more of them than readQueue

	skip int64 // mini-batches that the reader yields first and that are left out
	// grace, if set, ends a pass that was begun. Without it, that is the context of run.
	grace context.Context

	// space, if set, is called when the table finds no space on disk, and reports whether it
	// has made room.
	space func(cause error) bool

	engine engine.Engine // that works on the rows of the passes
	// announces says that the engine is told of a pass during the one before, if it has been pulled, and may use rows after the end
	// of theirs. Then begins and ends, which look at rows of the host, are not set.
	announces bool
	ranges    gpu.Ranger // what the stages do, for profilers; nil: none
	// begins and ends, if set, are called before the first mini-batch of a pass, and after the
	// last one, when nobody changes its rows.
	begins, ends func(w pulled)
	// yield, if set, is called when the table's memory cannot hold a pass, and reports whether
	// it has made room.
	yield func() bool
	// batch is stage EL+JL's work on one mini-batch. It may return pipeline.ErrStop.
	batch func(b *reader.Batch) error
	// begun, if set, gets the time that the rows of a pass took until they might be changed.
	begun func(took time.Duration)
	// passDone, if set, is called after a pass's last mini-batch, when its rows are released:
	// a snapshot of the table need not copy them at once.
	passDone func(p *reader.Pass) error
	// started, if set, gets the pipeline before it runs, for its statistics.
	started func(p *pipeline.Pipeline)
}

// run runs the stages until the data ends, and returns their statistics.
func (f *flow) run(ctx context.Context) ([]pipeline.StageStats, error) {
	if f.ranges == nil {
		f.ranges = gpu.RangerOf(nil)
	}
	p := pipeline.New(ctx)
	f.bytes.now.Store(0)
	var look atomic.Int64 // how many passes after the next one the table wants to be told of
	passes := pipeline.Source(p, stageRead, func(ctx context.Context, emit func(*reader.Pass) error) error {
		for {
			reading := f.ranges.StartRange("read")
			pass, err := f.reader.Next(ctx)
			f.ranges.EndRange(reading)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if n := int64(len(pass.Batches)); n <= f.skip {
				f.skip -= n
				pass.Recycle()
				continue
			}
			if f.skip > 0 {
				pass.Batches, f.skip = pass.Batches[f.skip:], 0
				pass = splitPass(pass, math.MaxInt)[0] // has no keys but those of its mini-batches
			}
			for _, part := range f.limit.cut(pass, f.log) {
				f.table.Announce(part.Keys)
				look.Store(int64(f.table.Lookahead(len(part.Keys))))
				f.bytes.add(part.MemoryBytes())
				if err := emit(part); err != nil {
					return err
				}
			}
		}
	})
	if f.readAheadBytes > 0 {
		passes.RunAhead(pipeline.Ahead[*reader.Pass]{
			Items: func() int { return int(look.Load()) }, MaxItems: maxReadAhead,
			Bytes: f.readAheadBytes, Size: (*reader.Pass).MemoryBytes,
		})
	}
	rows := newPuller(f.table, f.mode, f.limit, f.log, f.ranges)
	rows.space, rows.yield = f.space, f.yield
	ready := pipeline.Expand(p, stageTable, passes, f.readQueue, rows.pull)
	ready.OnDrop(rows.release)
	pipeline.SinkWithNext(p, stageLearn, ready, f.pullQueue, func(ctx context.Context, w pulled, next func() (pulled, bool)) error {
		users := 2 // this function, and the engine, which may use the pass for longer
		left := func() {
			if users--; users == 0 {
				f.bytes.add(-w.pass.MemoryBytes())
				w.pass.Recycle()
			}
		}
		defer left()
		if err := f.learn(ctx, w, next, func() {
			rows.release(w)
			left()
		}); err != nil {
			return err
		}
		if f.passDone != nil {
			return f.passDone(w.pass)
		}
		return nil
	}, func(w pulled) {
		f.engine.Withdraw()
		rows.release(w)
	})
	if f.started != nil {
		f.started(p)
	}
	err := p.Run()
	f.table.ForgetAnnounced() // passes that were announced but, after an error or a stop, never pulled
	return p.Stats(), err
}

// learn runs the engine over the mini-batches of a pass. release is called when its rows are not used any more; if the
// engine is told of passes beforehand, that can be during the next one.
func (f *flow) learn(ctx context.Context, w pulled, next func() (pulled, bool), release func()) (err error) {
	name := "evaluate"
	if f.mode == sparsetable.PullCreate {
		name = "train"
	}
	defer f.ranges.EndRange(f.ranges.StartRange(name))
	pass := w.forEngine()
	if f.announces {
		pass.Ended = release
	} else {
		defer release()
		defer func() { // the rows are not the engine's any more, and still pinned
			if err == nil && f.ends != nil {
				f.ends(w)
			}
		}()
	}
	start := time.Now()
	w.rows.Begin()
	if f.begun != nil {
		f.begun(time.Since(start))
	}
	if f.begins != nil {
		f.begins(w)
	}
	if err := f.engine.Begin(pass); err != nil {
		if f.announces {
			release()
		}
		return err
	}
	// The rows are the engine's until End returns, also after an error.
	defer func() {
		if end := f.engine.End(); err == nil {
			err = end
		}
	}()
	if f.grace != nil {
		ctx = f.grace
	}
	announced := !f.announces
	announce := func() error {
		if announced {
			return nil
		}
		n, ok := next()
		if !ok {
			return nil
		}
		announced = true
		return f.engine.Announce(n.forEngine())
	}
	for i := range w.pass.Batches {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := announce(); err != nil {
			return err
		}
		if err := f.batch(&w.pass.Batches[i]); err != nil {
			return err
		}
	}
	return announce()
}
