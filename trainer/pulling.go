package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"aibox/gpu"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
)

// pulled is a pass whose rows are pinned. Its holder releases them with
// puller.release.
type pulled struct {
	pass *reader.Pass
	rows *sparsetable.WorkingSet
}

// forEngine is the pass as an engine gets it.
func (w pulled) forEngine() engine.Pass {
	return engine.Pass{Keys: w.pass.Keys, Rows: w.rows, Batches: w.pass.Batches}
}

// puller pulls the rows of passes, one pass after the other, and counts the passes
// whose rows are pinned. The queues limit their number; if the table's memory cannot
// hold so many, fewer passes are pinned.
type puller struct {
	table  sparsetable.Table
	mode   sparsetable.PullMode
	log    *slog.Logger
	limit  *passLimit
	space  func(cause error) bool // as in flow
	yield  func() bool            // likewise
	ranges gpu.Ranger             // likewise

	begun    int64 // passes that were pulled
	warned   bool
	ended    atomic.Int64  // those that were released
	released chan struct{} // wakes pull
}

func newPuller(table sparsetable.Table, mode sparsetable.PullMode, limit *passLimit, log *slog.Logger, ranges gpu.Ranger) *puller {
	return &puller{table: table, mode: mode, limit: limit, log: log, ranges: ranges, released: make(chan struct{}, 1)}
}

// pull pins the rows of a pass. If the table's memory cannot hold all of them at the
// same time, it does so in parts; if it cannot hold those of one mini-batch, it fails.
func (p *puller) pull(ctx context.Context, pass *reader.Pass, emit func(pulled) error) error {
	for parts := p.limit.cut(pass, p.log); len(parts) > 0; {
		part := parts[0]
		w, err := p.pin(ctx, part)
		var budget *sparsetable.BudgetError
		switch {
		case err == nil:
			if err := emit(w); err != nil {
				return err
			}
			parts = parts[1:]
		case !errors.As(err, &budget) || budget.FitRows == 0:
			return fmt.Errorf("pass %d with %d unique keys: %w", part.Seq, len(part.Keys), err)
		case len(part.Batches) == 1:
			return fmt.Errorf("a mini-batch with %d unique keys: %w; give sparse_table.memory_bytes at least %d bytes, or make training.batch_size smaller",
				len(part.Keys), err, budget.NeedBytes)
		default:
			p.limit.lower(part, budget.FitRows, p.log)
			parts = append(p.limit.cut(part, p.log), parts[1:]...)
		}
	}
	return nil
}

// pin pins the rows of a pass. While the table has no memory for them, it waits for
// earlier passes to be released; if none is left to wait for, it fails. If the disk is full,
// it asks for space.
func (p *puller) pin(ctx context.Context, pass *reader.Pass) (pulled, error) {
	defer p.ranges.EndRange(p.ranges.StartRange("pull"))
	for {
		ended := p.ended.Load() // read before Pull: if a pass is released meanwhile, another attempt may succeed
		mode := p.mode
		if mode == sparsetable.PullCreate {
			mode |= sparsetable.PullAhead // stage EL+JL begins
		}
		if len(pass.Batches) > 1 {
			mode |= sparsetable.PullDivisible
		}
		rows, err := p.table.Pull(ctx, pass.Keys, mode)
		if err == nil {
			p.begun++
			return pulled{pass, rows}, nil
		}
		if diskFull(err) && p.space != nil && p.space(err) {
			continue
		}
		if errors.Is(err, sparsetable.ErrBudget) && p.yield != nil && p.yield() {
			continue
		}
		if !errors.Is(err, sparsetable.ErrBudget) || ended == p.begun {
			return pulled{}, err
		}
		if !p.warned {
			p.warned = true
			p.log.Warn("the table's memory cannot hold the rows of all passes in the queue, so passes wait for memory; increase sparse_table.memory_bytes, or decrease pipeline.batches_per_pass or pipeline.pull_queue",
				"passes", p.begun-ended, "error", err)
		}
		for p.ended.Load() == ended {
			select {
			case <-p.released:
			case <-ctx.Done():
				return pulled{}, context.Cause(ctx)
			}
		}
	}
}

// release ends a pass. It is called once for each, from any goroutine.
func (p *puller) release(w pulled) {
	w.rows.Release()
	p.ended.Add(1)
	select {
	case p.released <- struct{}{}:
	default:
	}
}
