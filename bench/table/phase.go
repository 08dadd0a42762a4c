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

	"aibox/sparsetable"
)

// job is what a child process is told, in JSON.
type job struct {
	Driver      string
	Phase       string
	Dir         string
	BudgetBytes int64
	Layout      sparsetable.Layout
	Keys        int
	Batches     int
	Lookups     int
	S           float64
	Seed        int64
	Getters     int
	Announce    int
	Policy      string
	Train       time.Duration
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

// run plays the job's phase. What it returns beside an error names the phase.
func (j *job) run(ctx context.Context) (r result, err error) {
	r = result{Driver: j.Driver, Phase: j.Phase, BudgetBytes: j.BudgetBytes}
	d := driverNamed(j.Driver)
	if d.inMemory {
		r.BudgetBytes = 0
	}
	if d.blocking {
		// A blocked thread keeps its processor until the runtime's monitor takes
		// it away; with one for each they all get to wait at once.
		runtime.GOMAXPROCS(max(j.Getters, runtime.NumCPU()))
	}
	var t *trace
	if j.Phase != phaseLoad {
		if t, err = newTrace(j.Keys, j.Batches, j.Lookups, j.S, j.phaseSeed()); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, t.close()) }()
		r.Batches, r.Unique = t.batches(), float64(t.unique())/float64(t.batches())
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
	if err := resetPeak(); err != nil {
		return r, fmt.Errorf("reset the peak of resident memory: %w", err)
	}
	base, err := readMemory()
	if err != nil {
		return r, err
	}
	r.BaseBytes = base.now
	start := time.Now()
	s, err := d.open(ctx, openOptions{Dir: j.Dir, Layout: j.Layout, BudgetBytes: j.BudgetBytes, Policy: j.Policy, Getters: j.Getters, Keys: j.Keys, Full: j.Phase != phaseCold})
	if err != nil {
		return r, err
	}
	r.OpenMS = ms(time.Since(start))
	err = j.play(ctx, d, s, t, &r)
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
	before, err := readProcIO()
	if err != nil {
		return err
	}
	var m measurement
	var io procIO
	c := s.Counters()
	if j.Phase != phaseLoad {
		run := runner{t: t, s: s, layout: j.Layout, announce: j.Announce, train: j.Train, copies: d.copies}
		if m, err = run.run(ctx); err != nil {
			return err
		}
		after, err := readProcIO()
		if err != nil {
			return err
		}
		io = after.minus(before)
		r.DeviceReads = float64(s.Counters().DeviceReads - c.DeviceReads)
		if c.DeviceReads < 0 {
			r.DeviceReads = float64(io.ReadCalls)
		}
	}
	if !d.inMemory {
		start := time.Now()
		if err := s.Save(ctx); err != nil {
			return fmt.Errorf("save: %w", err)
		}
		r.SaveMS = ms(time.Since(start))
	}
	return j.finish(s, m, io, before, r)
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

// finish fills in what is known at the end. during is the I/O of the
// mini-batches, start the counters before them.
func (j *job) finish(s store, m measurement, during, start procIO, r *result) error {
	saved, err := readProcIO()
	if err != nil {
		return err
	}
	mem, err := readMemory()
	if err != nil {
		return err
	}
	if r.DiskBytes, err = diskBytes(j.Dir); err != nil {
		return err
	}
	r.PeakBytes, r.StorePeak = mem.peak, mem.peak-r.BaseBytes
	r.Store = s.Counters().Own
	if j.Phase == phaseLoad {
		r.UpdatesPerSecond = float64(j.Keys) / (r.LoadMS / 1e3)
		return nil
	}
	n := float64(r.Batches)
	keys := r.Unique * n
	push := 0.0 // ms
	for _, p := range m.push {
		push += p
	}
	r.PullsPerSecond, r.UpdatesPerSecond = keys/m.pulled.Seconds(), keys/(push/1e3)
	r.BatchMS, r.BatchMSP99 = percentile(m.batch, 0.5), percentile(m.batch, 0.99)
	r.PullMS, r.PushMS = percentile(m.pull, 0.5), percentile(m.push, 0.5)
	if j.Train > 0 {
		r.WaitShare = m.waited.Seconds() / m.total.Seconds()
	}
	r.DeviceReads /= n
	r.DeviceReadBytes, r.DeviceWriteBytes = float64(during.ReadBytes)/n, float64(during.WriteBytes)/n
	r.WriteAmplification = float64(saved.minus(start).WriteBytes) / (keys * float64(keyBytes+j.Layout.Bytes()))
	r.Digest = fmt.Sprintf("%016x", m.digest)
	return nil
}
