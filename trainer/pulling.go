package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"aibox/reader"
	"aibox/sparsetable"
)

// pulled is a pass whose rows are pinned. Whoever holds it releases them by way
// of the puller it is from.
type pulled struct {
	pass *reader.Pass
	rows *sparsetable.WorkingSet
}

// puller pulls the rows of passes, one after the other, and knows how many of
// them are pinned. Queues say how many may be; where the table's memory does not
// hold so many, there are fewer.
type puller struct {
	table sparsetable.Table
	mode  sparsetable.PullMode
	log   *slog.Logger
	limit *passLimit

	begun    int64 // passes that were pulled
	warned   bool
	ended    atomic.Int64  // those that were released
	released chan struct{} // wakes pull
}

func newPuller(table sparsetable.Table, mode sparsetable.PullMode, limit *passLimit, log *slog.Logger) *puller {
	return &puller{table: table, mode: mode, limit: limit, log: log, released: make(chan struct{}, 1)}
}

// pull pins the rows of a pass, in parts where the table's memory does not hold
// them at a time. It fails where it does not hold those of a mini-batch.
func (p *puller) pull(ctx context.Context, pass *reader.Pass, emit func(pulled) error) error {
	for parts := p.limit.cut(pass); len(parts) > 0; {
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
			parts = append(p.limit.cut(part), parts[1:]...)
		}
	}
	return nil
}

// pin pins the rows of a pass. While there is no memory for them it waits for the
// passes before it; it fails where there is none although no other pass has any.
func (p *puller) pin(ctx context.Context, pass *reader.Pass) (pulled, error) {
	for {
		ended := p.ended.Load() // before the attempt: one that ends meanwhile makes another worthwhile
		rows, err := p.table.Pull(ctx, pass.Keys, p.mode)
		if err == nil {
			p.begun++
			return pulled{pass, rows}, nil
		}
		if !errors.Is(err, sparsetable.ErrBudget) || ended == p.begun {
			return pulled{}, err
		}
		if !p.warned {
			p.warned = true
			p.log.Warn("the table's memory does not hold the rows of the passes that wait for training: they wait for one another; give sparse_table.memory_bytes more, or make pipeline.batches_per_pass or pipeline.pull_queue smaller",
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
