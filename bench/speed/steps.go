package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"aibox/configs"
	"aibox/gpu"
	"aibox/gpu/cuda"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer"
	"aibox/trainer/engine"
	enginecuda "aibox/trainer/engine/cuda"
)

// steps are the passes of a job, read and with their rows pinned in memory, and the
// engine that trains on them.
type steps struct {
	engine engine.Engine
	passes []engine.Pass
}

// openSteps reads as many examples as are asked for and takes one step on each of their mini-batches.
func openSteps(ctx context.Context, job *configs.Job, r *request) (*steps, error) {
	var platform gpu.Platform
	if r.Chain {
		var err error
		if platform, err = cuda.OpenWith(cuda.Options{Chain: true}); err != nil {
			return nil, err
		}
	}
	bench, err := trainer.NewBench(ctx, job, platform, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	s := &steps{engine: bench.Engine}
	err = eachPass(ctx, bench.Reader, r.Examples, func(pass *reader.Pass) error {
		rows, err := bench.Table.Pull(ctx, pass.Keys, sparsetable.PullCreate)
		if err != nil {
			return err
		}
		s.passes = append(s.passes, engine.Pass{Keys: pass.Keys, Rows: rows, Batches: pass.Batches})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range s.passes {
		if _, err := s.pass(i, 1, new(within)); err != nil {
			return nil, err
		}
	}
	debug.FreeOSMemory() // else it is given back while steps are measured, which takes a hundredth of all processors
	return s, nil
}

// close gives back what the engine has of devices. s may be nil.
func (s *steps) close() error {
	if s == nil {
		return nil
	}
	if c, ok := s.engine.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// taken is the answer to a request for steps.
type taken struct {
	Examples int     `json:"examples"`
	Seconds  float64 `json:"seconds"`
	Loss     float64 `json:"loss"`           // of the last pass, before its updates
	Busy     float64 `json:"busy,omitempty"` // the share of sampled steps in which devices computed
}

// sampled returns how long the devices' sampled steps took so far, and for how long the devices
// were busy.
func (s *steps) sampled() (all, busy time.Duration) {
	if e, ok := s.engine.(*enginecuda.Engine); ok {
		for _, d := range e.Stats() {
			all, busy = all+d.SampledTime, busy+d.BusyTime
		}
	}
	return all, busy
}

// take trains on whole passes, in turn, until the time is over. If passes are trained on more than
// once, only the steps between the first result of a pass and the last one before its end count,
// which excludes the exchange of rows.
func (s *steps) take(r *request) (t taken, err error) {
	if r.Profile != "" {
		f, err := os.Create(r.Profile)
		if err != nil {
			return t, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return t, err
		}
		defer pprof.StopCPUProfile()
	}
	allBefore, busyBefore := s.sampled()
	rounds := max(1, r.Rounds)
	begin := time.Now()
	for i := 0; t.Seconds < r.Seconds; i = (i + 1) % len(s.passes) {
		w := within{}
		if t.Loss, err = s.pass(i, rounds, &w); err != nil {
			return t, err
		}
		if rounds > 1 {
			if w.examples == 0 {
				return t, fmt.Errorf("%d rounds over the %d mini-batches of a pass give no two results before its end", rounds, len(s.passes[i].Batches))
			}
			t.Examples += w.examples
			t.Seconds += w.last.Sub(w.first).Seconds()
			continue
		}
		for _, b := range s.passes[i].Batches {
			t.Examples += b.N
		}
		t.Seconds = time.Since(begin).Seconds()
	}
	if all, busy := s.sampled(); all > allBefore {
		t.Busy = float64(busy-busyBefore) / float64(all-allBefore)
	}
	return t, s.engine.Check()
}

// within is the steps of a pass but the first one, up to the last one whose result came before the
// end of the pass.
type within struct {
	examples    int
	first, last time.Time
}

// add adds a result.
func (w *within) add(n int) {
	w.last = time.Now()
	if w.first.IsZero() {
		w.first = w.last
		return
	}
	w.examples += n
}

// pass trains rounds times on pass i and returns the mean loss of its mini-batches.
func (s *steps) pass(i, rounds int, w *within) (float64, error) {
	if err := s.engine.Begin(s.passes[i]); err != nil {
		return 0, err
	}
	sum, ending := 0.0, false
	for j := range rounds * len(s.passes[i].Batches) {
		err := s.engine.Train(engine.Batch{Batch: &s.passes[i].Batches[j%len(s.passes[i].Batches)]}, func(r *engine.Result) error {
			sum += r.Loss
			if !ending {
				w.add(r.Batch.N)
			}
			return nil
		})
		if err != nil {
			return 0, errors.Join(err, s.engine.End())
		}
	}
	ending = true
	err := s.engine.End() // which delivers the last result
	return sum / float64(rounds*len(s.passes[i].Batches)), err
}
