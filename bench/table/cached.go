package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"aibox/sparsetable"

	"golang.org/x/sync/errgroup"
)

// cachedKeys is the number of keys of phase cached: their rows take at most an eighth of the
// budget, so that everything else that a store keeps fits, too.
func (j *job) cachedKeys() int {
	return max(2, min(j.Keys, int(j.BudgetBytes/int64(8*(keyBytes+j.Layout.Bytes())))))
}

// sharing runs the mini-batches of a trace on a store from several goroutines, each of
// which has a part of every mini-batch.
type sharing struct {
	t      *trace
	s      store
	layout sparsetable.Layout
	keys   []uint64
	parts  []sharedPart
}

// sharedPart is a goroutine's share of a mini-batch.
type sharedPart struct {
	keys   []uint64
	rows   rows
	digest uint64
}

func newSharing(t *trace, s store, l sparsetable.Layout) *sharing {
	return &sharing{t: t, s: s, layout: l, parts: make([]sharedPart, runtime.GOMAXPROCS(0))}
}

// each runs fn for all parts at once.
func (c *sharing) each(fn func(p *sharedPart) error) (time.Duration, error) {
	start := time.Now()
	var g errgroup.Group
	for i := range c.parts[1:] {
		g.Go(func() error { return fn(&c.parts[1+i]) })
	}
	err := fn(&c.parts[0])
	if e := g.Wait(); err == nil {
		err = e
	}
	return time.Since(start), err
}

// batch pulls, updates and pushes c.keys.
func (c *sharing) batch(ctx context.Context, m *measurement) error {
	for i := range c.parts {
		from, to := i*len(c.keys)/len(c.parts), (i+1)*len(c.keys)/len(c.parts)
		c.parts[i].keys = c.keys[from:to]
	}
	pull, err := c.each(func(p *sharedPart) (err error) {
		p.rows, err = c.s.Pull(ctx, p.keys)
		return err
	})
	if err != nil {
		return err
	}
	push, err := c.each(func(p *sharedPart) error {
		p.digest = update(c.layout, len(p.keys), p.rows, 0)
		return c.s.Push(ctx, p.keys, p.rows)
	})
	if err != nil {
		return err
	}
	for _, p := range c.parts {
		m.digest = m.digest*digestPower(len(p.keys)) + p.digest
	}
	m.add(pull, push)
	m.pulled = append(m.pulled, ms(pull))
	return nil
}

// warmRows is the number of rows that are pulled at once to warm a store up.
const warmRows = 4096

// warm trains every one of n keys twice.
func (c *sharing) warm(ctx context.Context, n int, m *measurement) error {
	for range 2 {
		for i := 0; i < n; {
			c.keys = c.keys[:0]
			for ; i < n && len(c.keys) < warmRows; i++ {
				c.keys = append(c.keys, keyOf(uint64(i)))
			}
			if err := c.batch(ctx, m); err != nil {
				return fmt.Errorf("warm up: %w", err)
			}
		}
	}
	return nil
}

// playCached plays phase cached.
func (j *job) playCached(ctx context.Context, s store, t *trace, r *result) error {
	c := newSharing(t, s, j.Layout)
	var warm, m measurement
	if err := c.warm(ctx, j.cachedKeys(), &warm); err != nil {
		return err
	}
	m.digest = warm.digest
	before, err := sample(s)
	if err != nil {
		return err
	}
	for b := range t.batches() {
		if err := m.sampleParts(s, b, t.batches(), j.Parts); err != nil {
			return err
		}
		c.keys = t.appendKeys(c.keys[:0], b)
		if err := c.batch(ctx, &m); err != nil {
			return err
		}
	}
	after, err := sample(s)
	if err != nil {
		return err
	}
	j.measured(&m, t, before, after, r)
	return j.finish(s, before, r)
}
