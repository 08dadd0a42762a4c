package flow

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
)

// Pulled is a pass whose rows are pinned. Its holder releases them with
// puller.release.
type Pulled struct {
	Pass *reader.Pass
	Rows *sparsetable.WorkingSet
}

// forEngine returns the pass in the engine's form.
func (w Pulled) forEngine() engine.Pass {
	return engine.Pass{Keys: w.Pass.Keys, Rows: w.Rows, Batches: w.Pass.Batches}
}

// puller pulls the rows of one pass after the other, and counts the passes whose rows are pinned.
// The queues limit that number; if the table's memory cannot hold that many passes, fewer are
// pinned.
type puller struct {
	*Stages
	mode  sparsetable.PullMode
	yield func() bool // as in Hooks

	begun    int64 // passes that were pulled
	warned   bool
	ended    atomic.Int64  // passes that were released
	released chan struct{} // wakes pull
	starved  chan struct{} // signals that pull waits for memory
	shortage shortage      // the initial value for each pass
}

func newPuller(s *Stages, mode sparsetable.PullMode, yield func() bool) *puller {
	return &puller{Stages: s, mode: mode, yield: yield, released: make(chan struct{}, 1), starved: make(chan struct{}, 1),
		shortage: shortage{patience: memoryPatience, pause: memoryPause}}
}

// pull pins the rows of a pass. If the table's memory cannot hold all of them at once, pull does so
// in parts. It fails if the memory cannot hold those of one mini-batch.
func (p *puller) pull(ctx context.Context, pass *reader.Pass, emit func(Pulled) error) error {
	for parts := p.Limit.cut(pass, p.Log); len(parts) > 0; {
		part := parts[0]
		w, err := p.pin(ctx, part)
		var budget *sparsetable.BudgetError
		switch {
		case err == nil:
			p.Limit.fits()
			if err := emit(w); err != nil {
				return err
			}
			parts = parts[1:]
		case !errors.As(err, &budget) || budget.FitRows == 0:
			return fmt.Errorf("pass %d with %d unique keys: %w", part.Seq, len(part.Keys), err)
		case len(part.Batches) == 1:
			// cmd/aibox adds further advice, depending on the error.
			return fmt.Errorf("a mini-batch with %d unique keys: %w; a smaller training.batch_size needs less", len(part.Keys), err)
		default:
			p.Limit.lower(part, budget, p.Log)
			parts = append(p.Limit.cut(part, p.Log), parts[1:]...)
		}
	}
	return nil
}

// pin pins the rows of a pass. While the table has no memory for them, or needs a moment without
// pinned rows, pin waits for earlier passes to be released. If there are none, it frees memory or
// waits for some, and fails if there is still too little. After other errors it asks for space on disk.
func (p *puller) pin(ctx context.Context, pass *reader.Pass) (Pulled, error) {
	defer p.Ranges.EndRange(p.Ranges.StartRange("pull"))
	short := p.shortage
	for {
		ended := p.ended.Load() // read before Pull: if a pass is released meanwhile, another attempt may succeed
		mode := p.mode
		if mode == sparsetable.PullCreate {
			mode |= sparsetable.PullAhead // stage EL+JL calls Rows.Begin
		}
		if ended != p.begun {
			mode |= sparsetable.PullPatient // the pinned passes will be released
		}
		if len(pass.Batches) > 1 {
			mode |= sparsetable.PullDivisible
		}
		rows, err := p.Table.Pull(ctx, pass.Keys, mode)
		if err == nil {
			p.begun++
			return Pulled{pass, rows}, nil
		}
		if p.Space != nil && p.Space(err) {
			continue
		}
		crowded, full := errors.Is(err, sparsetable.ErrCrowded), errors.Is(err, sparsetable.ErrBudget)
		if full && p.yield != nil && p.yield() {
			continue
		}
		if full && ended == p.begun && errors.Is(err, sparsetable.ErrMemory) && short.retry(ctx, len(pass.Batches) > 1, p.Log, err) {
			continue
		}
		if !crowded && !full || ended == p.begun {
			return Pulled{}, err
		}
		if full && !p.warned {
			p.warned = true
			more := "increase sparse_table.memory_bytes"
			if errors.Is(err, sparsetable.ErrMemory) {
				more = "let the job have more memory"
			}
			p.Log.Warn("the table's memory cannot hold the rows of all passes in the queue, so passes wait for memory; "+more+", or decrease pipeline.batches_per_pass or pipeline.pull_queue",
				"passes", p.begun-ended, "error", err)
		}
		select {
		case p.starved <- struct{}{}:
		default:
		}
		for p.ended.Load() == ended {
			select {
			case <-p.released:
			case <-ctx.Done():
				return Pulled{}, context.Cause(ctx)
			}
		}
	}
}

// release releases the rows of a pass. It is called once for each pass, from any goroutine.
func (p *puller) release(w Pulled) {
	w.Rows.Release()
	p.ended.Add(1)
	select {
	case p.released <- struct{}{}:
	default:
	}
}
