package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"aibox/sparsetable"
)

// measurement has the times of the mini-batches of a phase, in milliseconds. With a
// trainer, pull is the time that it waits for rows, not the time that the pull takes.
type measurement struct {
	pull, push, batch []float64
	pulled            []float64 // by pulls, ahead or not
	stored            []float64 // by the store's part of push, without the trainer's updates of the rows
	whole             []float64 // from the end of the mini-batch before to its own end; empty for external stores
	trained           bool      // beside a trainer
	snapshot          []float64 // by a call that starts a snapshot; empty: there are none
	beside            []bool    // a snapshot was being written when the mini-batch began
	samples           []traffic // when each part began
	digest            uint64
}

func (m *measurement) add(pull, push time.Duration) {
	m.pull = append(m.pull, ms(pull))
	m.push = append(m.push, ms(push))
	m.batch = append(m.batch, ms(pull+push))
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// runner runs the mini-batches of a trace on a store.
type runner struct {
	t        *trace
	s        store
	layout   sparsetable.Layout
	announce int           // mini-batches
	train    time.Duration // that a mini-batch takes; 0: no trainer
	copies   bool          // see driver
	parts    int           // that are reported by themselves
	every    int           // mini-batches from one snapshot to the next; 0: no snapshots

	told   int         // mini-batches announced
	unique []int       // keys of each
	keys   [3][]uint64 // of the mini-batches whose rows are in a flatRing
}

// pulled is a mini-batch on its way to the trainer.
type pulled struct {
	keys []uint64
	rows rows
	took time.Duration
	err  error
}

func (r *runner) run(ctx context.Context) (measurement, error) {
	r.unique = r.t.counts()
	r.tell(-1)
	if r.train > 0 {
		return r.besideTrainer(ctx)
	}
	return r.alone(ctx)
}

// tell announces mini-batches while b is pulled, as far ahead as the store looks.
func (r *runner) tell(b int) {
	a, ok := r.s.(announcer)
	if !ok || r.announce == 0 {
		return
	}
	for ; r.told < r.t.batches() && r.told <= b+min(r.announce, a.Lookahead(r.unique[r.told])); r.told++ {
		a.Announce(r.t.keysOf(r.told))
	}
}

// pull pulls mini-batch b. Making its keys is not part of the time.
func (r *runner) pull(ctx context.Context, b int) pulled {
	keys := &r.keys[b%len(r.keys)]
	*keys = r.t.appendKeys((*keys)[:0], b)
	start := time.Now()
	// As in a training job, mini-batches are announced by another goroutine (the stage
	// that reads) while this one pulls.
	var reading sync.WaitGroup
	reading.Go(func() { r.tell(b) })
	rows, err := r.s.Pull(ctx, *keys)
	reading.Wait()
	return pulled{keys: *keys, rows: rows, took: time.Since(start), err: err}
}

// push updates and writes back a mini-batch.
func (r *runner) push(ctx context.Context, m *measurement, p pulled) (time.Duration, error) {
	start := time.Now()
	m.digest = update(r.layout, len(p.keys), p.rows, m.digest)
	updated := time.Now()
	err := r.s.Push(ctx, p.keys, p.rows)
	m.stored = append(m.stored, ms(time.Since(updated)))
	return time.Since(start), err
}

// begin comes before a mini-batch and is not part of its time.
func (r *runner) begin(m *measurement) {
	if r.every > 0 {
		m.beside = append(m.beside, r.s.(snapshotter).Snapshotting())
	}
}

// sampleParts notes what s has read and written so far where a part begins with
// mini-batch b. Nothing is being pulled meanwhile.
func (m *measurement) sampleParts(s store, b, batches, parts int) error {
	if len(m.samples) == parts || b != partStart(batches, parts, len(m.samples)) {
		return nil
	}
	now, err := sample(s)
	m.samples = append(m.samples, now)
	return err
}

// partStart is the first mini-batch of a part, and one past those of the part
// before.
func partStart(batches, parts, part int) int { return batches * part / parts }

// end comes after mini-batch b, which began at start, its snapshot included.
func (r *runner) end(ctx context.Context, m *measurement, b int, start time.Time) error {
	if r.every > 0 {
		took := time.Duration(0)
		if (b+1)%r.every == 0 {
			began := time.Now()
			if err := r.s.(snapshotter).Snapshot(ctx); err != nil {
				return fmt.Errorf("snapshot after mini-batch %d: %w", b, err)
			}
			took = time.Since(began)
		}
		m.snapshot = append(m.snapshot, ms(took))
	}
	m.whole = append(m.whole, ms(time.Since(start)))
	return nil
}

// alone pulls, updates and pushes one mini-batch after the other.
func (r *runner) alone(ctx context.Context) (m measurement, err error) {
	for b := range r.t.batches() {
		if err := m.sampleParts(r.s, b, r.t.batches(), r.parts); err != nil {
			return m, err
		}
		r.begin(&m)
		start := time.Now()
		p := r.pull(ctx, b)
		if p.err != nil {
			return m, p.err
		}
		push, err := r.push(ctx, &m, p)
		if err != nil {
			return m, err
		}
		m.add(p.took, push)
		m.pulled = append(m.pulled, ms(p.took))
		if err := r.end(ctx, &m, b, start); err != nil {
			return m, err
		}
	}
	return m, nil
}

// besideTrainer pulls the next mini-batch while a trainer takes its time for the present
// one.
func (r *runner) besideTrainer(ctx context.Context) (m measurement, err error) {
	m.trained = true
	next := make(chan pulled, 1)
	var pulling bool
	ahead := func(b int) error {
		if err := m.sampleParts(r.s, b, r.t.batches(), r.parts); err != nil {
			return err
		}
		pulling = true
		go func() { next <- r.pull(ctx, b) }()
		return nil
	}
	defer func() {
		if pulling {
			<-next
		}
	}()
	if err := ahead(0); err != nil {
		return m, err
	}
	var shared overlay
	var before pulled
	for b := range r.t.batches() {
		r.begin(&m)
		start := time.Now()
		p := <-next
		pulling = false
		if p.err != nil {
			return m, p.err
		}
		if r.copies && b > 0 {
			shared.copyShared(p.keys, p.rows, before.keys, before.rows)
		}
		waited := time.Since(start)
		if b < r.t.batches()-1 {
			if err := ahead(b + 1); err != nil {
				return m, err
			}
		}
		time.Sleep(r.train)
		push, err := r.push(ctx, &m, p)
		if err != nil {
			return m, err
		}
		m.add(waited, push)
		m.pulled = append(m.pulled, ms(p.took))
		before = p
		if err := r.end(ctx, &m, b, start); err != nil {
			return m, err
		}
	}
	return m, nil
}
