package main

import (
	"context"
	"time"

	"aibox/sparsetable"
)

// measurement is the times of the mini-batches of a phase, in milliseconds.
// With a trainer, pull is what it waits for, not what the pull takes.
type measurement struct {
	pull, push, batch []float64
	total             time.Duration // from the first pull to the last push
	waited            time.Duration // by the trainer, in all; without one, all of it
	pulled            time.Duration // by pulls, ahead or not
	digest            uint64
}

func (m *measurement) add(pull, push time.Duration) {
	m.pull = append(m.pull, ms(pull))
	m.push = append(m.push, ms(push))
	m.batch = append(m.batch, ms(pull+push))
	m.waited += pull + push
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// runner plays a trace to a store.
type runner struct {
	t        *trace
	s        store
	layout   sparsetable.Layout
	announce int           // mini-batches
	train    time.Duration // that a mini-batch takes; 0: no trainer
	copies   bool          // see driver

	told     int // mini-batches announced
	toldKeys []uint64
	keys     [3][]uint64 // of the mini-batches that flatRing's rows are of
}

// pulled is a mini-batch on its way to the trainer.
type pulled struct {
	keys []uint64
	rows rows
	took time.Duration
	err  error
}

func (r *runner) run(ctx context.Context) (measurement, error) {
	r.tell(r.announce - 1) // the first pull announces one more
	if r.train > 0 {
		return r.besideTrainer(ctx)
	}
	return r.alone(ctx)
}

// tell announces mini-batches up to and including b.
func (r *runner) tell(b int) {
	a, ok := r.s.(announcer)
	if !ok || r.announce == 0 {
		return
	}
	for ; r.told <= b && r.told < r.t.batches(); r.told++ {
		r.toldKeys = r.t.appendKeys(r.toldKeys[:0], r.told)
		a.Announce(int64(r.told), r.toldKeys)
	}
}

// pull pulls mini-batch b. Making its keys is not part of the time.
func (r *runner) pull(ctx context.Context, b int) pulled {
	keys := &r.keys[b%len(r.keys)]
	*keys = r.t.appendKeys((*keys)[:0], b)
	start := time.Now()
	r.tell(b + r.announce)
	rows, err := r.s.Pull(ctx, *keys)
	return pulled{keys: *keys, rows: rows, took: time.Since(start), err: err}
}

// push updates and writes back a mini-batch.
func (r *runner) push(ctx context.Context, m *measurement, p pulled) (time.Duration, error) {
	start := time.Now()
	m.digest = update(r.layout, len(p.keys), p.rows, m.digest)
	err := r.s.Push(ctx, p.keys, p.rows)
	return time.Since(start), err
}

// alone pulls, updates and pushes one mini-batch after the other.
func (r *runner) alone(ctx context.Context) (m measurement, err error) {
	start := time.Now()
	for b := range r.t.batches() {
		p := r.pull(ctx, b)
		if p.err != nil {
			return m, p.err
		}
		push, err := r.push(ctx, &m, p)
		if err != nil {
			return m, err
		}
		m.add(p.took, push)
		m.pulled += p.took
	}
	m.total = time.Since(start)
	return m, nil
}

// besideTrainer lets a trainer take its time for every mini-batch, while the
// next one is pulled.
func (r *runner) besideTrainer(ctx context.Context) (m measurement, err error) {
	next := make(chan pulled, 1)
	ahead := func(b int) { go func() { next <- r.pull(ctx, b) }() }
	start := time.Now()
	ahead(0)
	var shared overlay
	var before pulled
	for b := range r.t.batches() {
		began := time.Now()
		p := <-next
		if p.err != nil {
			return m, p.err
		}
		if r.copies && b > 0 {
			shared.copyShared(p.keys, p.rows, before.keys, before.rows)
		}
		waited := time.Since(began)
		last := b == r.t.batches()-1
		if !last {
			ahead(b + 1)
		}
		time.Sleep(r.train)
		push, err := r.push(ctx, &m, p)
		if err != nil {
			if !last {
				<-next
			}
			return m, err
		}
		m.add(waited, push)
		m.pulled += p.took
		before = p
	}
	m.total = time.Since(start)
	return m, nil
}
