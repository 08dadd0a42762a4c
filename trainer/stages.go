package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/pipeline"
	"aibox/reader"
	"aibox/sparsetable"
)

// Stage names, as the paper's Table 1 has them.
const (
	stageRead  = "RE"
	stageTable = "ST"
	stageLearn = "EL+JL"
)

// pulled is a pass whose rows are pinned. Whoever holds it releases them.
type pulled struct {
	pass *reader.Pass
	rows *sparsetable.WorkingSet
}

// flow is one run of the three stages over one reading of the data.
type flow struct {
	reader *reader.Reader
	table  sparsetable.Table
	mode   sparsetable.PullMode

	readQueue, pullQueue int

	// batch is stage EL+JL's work on one mini-batch. It may return
	// pipeline.ErrStop.
	batch func(rows *sparsetable.WorkingSet, b *reader.Batch) error
	// passDone, if set, is called after a pass's last mini-batch.
	passDone func(p *reader.Pass)
	// started, if set, gets the pipeline before it runs, for its statistics.
	started func(p *pipeline.Pipeline)
}

// run runs the stages until the data ends, and returns their statistics.
func (f *flow) run(ctx context.Context) ([]pipeline.StageStats, error) {
	p := pipeline.New(ctx)
	passes := pipeline.Source(p, stageRead, func(ctx context.Context, emit func(*reader.Pass) error) error {
		for {
			pass, err := f.reader.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			f.table.Announce(pass.Seq, pass.Keys)
			if err := emit(pass); err != nil {
				return err
			}
		}
	})
	ready := pipeline.Map(p, stageTable, passes, f.readQueue, func(ctx context.Context, pass *reader.Pass) (pulled, error) {
		rows, err := f.table.Pull(ctx, pass.Keys, f.mode)
		if err != nil {
			return pulled{}, fmt.Errorf("pass %d with %d unique keys: %w", pass.Seq, len(pass.Keys), err)
		}
		return pulled{pass, rows}, nil
	})
	ready.OnDrop(func(w pulled) { w.rows.Release() })
	pipeline.Sink(p, stageLearn, ready, f.pullQueue, func(ctx context.Context, w pulled) error {
		defer w.rows.Release()
		for i := range w.pass.Batches {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := f.batch(w.rows, &w.pass.Batches[i]); err != nil {
				return err
			}
		}
		if f.passDone != nil {
			f.passDone(w.pass)
		}
		return nil
	})
	if f.started != nil {
		f.started(p)
	}
	err := p.Run()
	return p.Stats(), err
}
