package flow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestDivisiblePulls checks that the table is told for each Pull whether it may be divided: a pass
// of several mini-batches may be, so that filters are not dropped for it, and the last mini-batch
// of an odd number may not. The table is also told that it may ask the caller to wait, if there are
// passes that will be released.
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

// shortOfMemory is a table that lacks memory for its first Pulls.
type shortOfMemory struct {
	sparsetable.Table
	fails, pulls int
}

func (s *shortOfMemory) Pull(context.Context, []uint64, sparsetable.PullMode) (*sparsetable.WorkingSet, error) {
	if s.pulls++; s.pulls <= s.fails {
		return nil, &sparsetable.BudgetError{LackingBytes: 1, FitRows: 1}
	}
	return nil, nil
}

// TestShortageOfMemory checks that a pass for which there is too little memory is pulled again
// after garbage was returned to the system. After that, a pass of several mini-batches is divided,
// and a single mini-batch waits for memory, until its patience or the job ends.
func TestShortageOfMemory(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx                   context.Context
		batches, fails, pulls int
		patience              time.Duration
		fits, warns           bool
	}{
		"garbage":                 {t.Context(), 1, 1, 2, 0, true, false},
		"garbage, a pass":         {t.Context(), 2, 1, 2, time.Hour, true, false},
		"another process":         {t.Context(), 1, 5, 6, time.Hour, true, true},
		"another process, a pass": {t.Context(), 2, 2, 4, time.Hour, true, false}, // two parts
		"it stays":                {t.Context(), 1, 2, 2, 0, false, false},
		"the job ends":            {canceled, 1, 5, 2, time.Hour, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			pass := &reader.Pass{}
			for b := range c.batches {
				pass.Keys = append(pass.Keys, uint64(b))
				pass.Batches = append(pass.Batches, reader.Batch{N: 1, Rows: []int32{int32(b)}})
			}
			var log strings.Builder
			table := &shortOfMemory{fails: c.fails}
			p := newPuller(&Stages{Table: table, Limit: new(Limit), Log: slog.New(slog.NewTextHandler(&log, nil)), Ranges: gpu.RangerOf(nil)}, sparsetable.PullCreate, nil)
			p.shortage = shortage{patience: c.patience, pause: time.Millisecond}
			err := p.pull(c.ctx, pass, func(w Pulled) error {
				p.ended.Add(1)
				return nil
			})
			if fits := err == nil; fits != c.fits || !fits && !errors.Is(err, sparsetable.ErrMemory) {
				t.Errorf("it ends with %v", err)
			}
			if table.pulls != c.pulls {
				t.Errorf("%d Pulls, want %d", table.pulls, c.pulls)
			}
			if warns := strings.Contains(log.String(), "waits until enough is free"); warns != c.warns {
				t.Errorf("it says:\n%s", log.String())
			}
		})
	}
}
