package flow

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/reader"
	"aibox/sparsetable"
)

// modesOf is a table that notes how rows are pulled, and holds those of ten keys at most.
type modesOf struct {
	sparsetable.Table
	modes []sparsetable.PullMode
}

func (m *modesOf) Pull(_ context.Context, keys []uint64, mode sparsetable.PullMode) (*sparsetable.WorkingSet, error) {
	m.modes = append(m.modes, mode)
	if len(keys) > 10 {
		return nil, &sparsetable.BudgetError{FitRows: 10}
	}
	return nil, nil
}

// TestDivisiblePulls: the table is told of each Pull whether it may be divided: one of
// several mini-batches may be, so that filters need not make way for it, and the last
// mini-batch of an odd number may not. It is told, too, that it may ask to wait, where there are passes that will be released.
func TestDivisiblePulls(t *testing.T) {
	pass := &reader.Pass{}
	for b := range 5 {
		batch := reader.Batch{N: 1}
		for range 5 {
			batch.Rows = append(batch.Rows, int32(len(pass.Keys)))
			pass.Keys = append(pass.Keys, uint64(100*b+len(pass.Keys)))
		}
		pass.Batches = append(pass.Batches, batch)
	}
	table := &modesOf{}
	stages := &Stages{Table: table, Limit: new(Limit), Log: slog.New(slog.DiscardHandler), Ranges: gpu.RangerOf(nil)}
	p := newPuller(stages, sparsetable.PullLookup, nil)
	if err := p.pull(t.Context(), pass, func(Pulled) error { return nil }); err != nil {
		t.Fatal(err)
	}
	const divisible = sparsetable.PullLookup | sparsetable.PullDivisible
	if want := []sparsetable.PullMode{divisible, divisible, divisible | sparsetable.PullPatient, sparsetable.PullLookup | sparsetable.PullPatient}; !slices.Equal(table.modes, want) {
		t.Errorf("Pulls of modes %d, want %d", table.modes, want)
	}
}
