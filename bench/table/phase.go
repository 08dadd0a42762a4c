package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"aibox/internal/process"
	"aibox/sparsetable"
)

// job is what a child process is told, in JSON.
type job struct {
	Driver        string
	Phase         string
	Dir           string
	BudgetBytes   int64
	Layout        sparsetable.Layout
	Keys          int
	Batches       int
	Lookups       int
	S             float64
	Seed          int64
	Getters       int
	Announce      int
	Policy        string
	Train         time.Duration
	Parts         int // reported by themselves
	SnapshotEvery int // mini-batches; 0: none
}

// runChild runs the job that arg describes and prints its result to out.
func runChild(ctx context.Context, arg string, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(arg), &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	r, err := j.run(ctx)
	switch {
	case errors.Is(err, errUnavailable):
		r.Unavailable = err.Error()
	case err != nil:
		r.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(r)
}

// phaseSeed keeps phases from replaying each other's mini-batches.
func (j *job) phaseSeed() int64 {
	for i, p := range []string{phaseCold, phaseFull, phaseHot} {
		if p == j.Phase {
			return 3*j.Seed + int64(i)
		}
	}
	return j.Seed
}

// run runs the job's phase. If it returns an error, its result still names the phase.
func (j *job) run(ctx context.Context) (r result, err error) {
	r = result{Driver: j.Driver, Phase: j.Phase, BudgetBytes: j.BudgetBytes}
	d := driverNamed(j.Driver)
	if d.inMemory {
		r.BudgetBytes = 0
	}
	if d.blocking {
		// A blocked thread keeps its processor of the Go runtime until the runtime's
		// monitor takes it away. With one processor for each getter all can wait at once.
		runtime.GOMAXPROCS(max(j.Getters, runtime.NumCPU()))
	}
	var t *trace
	if j.Phase != phaseLoad {
		keys := j.Keys
		if j.Phase == phaseCached {
			keys = j.cachedKeys()
		}
		if t, err = newTrace(keys, j.Batches, j.Lookups, j.S, j.phaseSeed()); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, t.close()) }()
		if d.listens && j.Announce > 0 {
			if err := t.announceable(); err != nil {
				return r, err
			}
		}
	}
	if err := os.MkdirAll(j.Dir, 0o777); err != nil {
		return r, err
	}
	if j.Phase == phaseFull || j.Phase == phaseHot {
		if err := dropPageCache(j.Dir); err != nil {
			return r, fmt.Errorf("drop the page cache: %w", err)
		}
	}
	debug.FreeOSMemory()
	if err := process.ResetPeak(); err != nil {
		return r, fmt.Errorf("reset the peak of resident memory: %w", err)
	}
	base, err := process.ReadMemory()
	if err != nil {
		return r, err
	}
	r.BaseBytes = base.Now
	start := time.Now()
	s, err := d.open(ctx, openOptions{Dir: j.Dir, Layout: j.Layout, BudgetBytes: j.BudgetBytes, Policy: j.Policy, Getters: j.Getters, Keys: j.Keys, Full: j.Phase != phaseCold && j.Phase != phaseCached, Loading: j.Phase == phaseLoad})
	if err != nil {
		return r, err
	}
	r.OpenMS = ms(time.Since(start))
	if j.Phase == phaseCached {
		err = j.playCached(ctx, s, t, &r)
	} else {
		err = j.play(ctx, d, s, t, &r)
	}
	return r, errors.Join(err, s.Close())
}

// play fills r from an open store.
func (j *job) play(ctx context.Context, d driver, s store, t *trace, r *result) error {
	if j.Phase == phaseLoad || d.inMemory && j.Phase == phaseFull {
		start := time.Now()
		if err := j.load(ctx, s); err != nil {
			return err
		}
		r.LoadMS = ms(time.Since(start))
	}
	before, err := sample(s)
	if err != nil {
		return err
	}
	if j.Phase != phaseLoad {
		run := runner{t: t, s: s, layout: j.Layout, announce: j.Announce, train: j.Train, copies: d.copies, parts: j.Parts}
		if d.snapshots {
			run.every = j.SnapshotEvery
		}
		m, err := run.run(ctx)
		if err != nil {
			return err
		}
		after, err := sample(s)
		if err != nil {
			return err
		}
		j.measured(&m, t, before, after, r)
	}
	if !d.inMemory {
		start := time.Now()
		if err := s.Save(ctx); err != nil {
			return fmt.Errorf("save: %w", err)
		}
		r.SaveMS = ms(time.Since(start))
	}
	return j.finish(s, before, r)
}

// measured fills in the figures of the trace's mini-batches, which lie between two
// samples of traffic.
func (j *job) measured(m *measurement, t *trace, before, after traffic, r *result) {
	unique := t.counts()
	r.figures = m.figures(unique, 0, len(unique), after.minus(before))
	at := append(m.samples, after)
	r.addParts(m, unique, j.Parts, func(part int) traffic { return at[part+1].minus(at[part]) })
	r.Digest = fmt.Sprintf("%016x", m.digest)
}

// addParts fills in the figures of the parts, if there are several.
func (r *result) addParts(m *measurement, unique []int, parts int, during func(part int) traffic) {
	for p := 0; p < parts && parts > 1; p++ {
		from, to := partStart(len(unique), parts, p), partStart(len(unique), parts, p+1)
		r.Parts = append(r.Parts, m.figures(unique, from, to, during(p)))
	}
}

// load fills the store with every key.
func (j *job) load(ctx context.Context, s store) error {
	order := loadOrder(j.Keys)
	return s.Load(ctx, j.Keys, func(i int, row []float32) uint64 {
		key := keyOf(order(i))
		loadRow(j.Layout, key, row)
		return key
	})
}

// finish fills in what is known at the end; before is the traffic before the first
// mini-batch.
func (j *job) finish(s store, before traffic, r *result) error {
	saved, err := readProcIO()
	if err != nil {
		return err
	}
	mem, err := process.ReadMemory()
	if err != nil {
		return err
	}
	if r.DiskBytes, err = diskBytes(j.Dir); err != nil {
		return err
	}
	r.PeakBytes, r.StorePeak = mem.Peak, mem.Peak-r.BaseBytes
	r.Store = s.Counters().Own
	if j.Phase == phaseLoad {
		r.UpdatesPerSecond = float64(j.Keys) / (r.LoadMS / 1e3)
		return nil
	}
	pushed := r.Unique * float64(r.Batches) * float64(keyBytes+j.Layout.Bytes())
	r.WriteAmplification = float64(saved.WriteBytes-before.writeBytes) / pushed
	return nil
}
