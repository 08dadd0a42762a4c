package reader

import (
	"context"
	"errors"
	"io"
)

// builder makes passes of examples. The work is divided so that as little as possible
// remains for the one goroutine that calls Reader.Next:
//
//   - That goroutine assigns the examples, in the order of the input, to drafts of
//     mini-batches: only block and row numbers.
//   - Workers make the mini-batches, several at a time: they copy the examples and number
//     the keys of one mini-batch by themselves.
//   - The goroutine takes the mini-batches back in their order and numbers their unique
//     keys within the pass.
//
// Drafts of the next pass may be with the workers while a pass is completed.
type builder struct {
	plan           *plan
	stream         *stream
	pool           *passPool
	batchSize      int
	batchesPerPass int
	depth          int // drafts that are with the workers at most

	seq     int64
	open    *draft   // gets the next examples; nil: none does yet
	filling *Pass    // gets the next draft; nil: a new pass
	filled  int      // drafts of filling so far
	waiting []*draft // with the workers, in order
	free    []*draft

	table   keyTable
	merging *Pass // has the mini-batches that were taken back
	merged  int
	helper  batchMaker
}

func newBuilder(o *Options, s *stream) *builder {
	return &builder{
		plan: s.plan, stream: s, pool: new(passPool), batchSize: o.BatchSize, batchesPerPass: o.BatchesPerPass, depth: cap(s.drafts),
	}
}

// draft returns the draft that gets the next examples, and how many it takes.
func (b *builder) draft() (d *draft, room int) {
	if b.open == nil {
		if n := len(b.free); n > 0 {
			b.open, b.free = b.free[n-1], b.free[:n-1]
		} else {
			b.open = newDraft()
		}
	}
	return b.open, b.batchSize - b.open.n
}

// submit hands the open draft to the workers. counts are those of the input so far.
func (b *builder) submit(counts func() Counts) {
	d := b.open
	b.open = nil
	if b.filling == nil {
		b.filling, b.filled = b.pool.get(b.seq, b.batchesPerPass), 0
		b.seq++
	}
	d.pass, d.at, d.made = b.filling, b.filled, false
	if b.filled++; b.filled == b.batchesPerPass {
		d.counts = counts()
		b.filling = nil
	}
	b.waiting = append(b.waiting, d)
	b.stream.drafts <- d // there is room: at most depth drafts wait
}

// await returns when a draft's mini-batch is made. Meanwhile it makes others itself, so
// that it does not depend on workers, which may be busy.
func (b *builder) await(ctx context.Context, d *draft) error {
	for !d.made {
		select {
		case <-d.done:
			d.made = true
			continue
		default:
		}
		select {
		case <-d.done:
			d.made = true
		case other := <-b.stream.drafts:
			b.helper.make(b.stream, other)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.stream.ctx.Done():
			return context.Cause(b.stream.ctx)
		}
	}
	return d.err
}

// settle returns when all mini-batches that wait are made.
func (b *builder) settle(ctx context.Context) error {
	for _, d := range b.waiting {
		if err := b.await(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// merge takes the oldest mini-batch back, and returns its pass if that is complete, with
// the counts of the input at its end.
func (b *builder) merge(ctx context.Context) (*Pass, *Counts, error) {
	d := b.waiting[0]
	if err := b.await(ctx, d); err != nil {
		return nil, nil, err
	}
	b.waiting = append(b.waiting[:0], b.waiting[1:]...)
	pass := d.pass
	if d.at == 0 {
		b.merging, b.merged = pass, 0
		b.table.reset(pass.Keys)
	}
	batch := &pass.Batches[d.at]
	batch.Rows = room(batch.Rows, len(d.keys))[:len(d.keys)]
	b.table.numberAll(d.keys, batch.Rows)
	b.merged++
	d.pass, d.n, d.keys = nil, 0, d.keys[:0]
	b.free = append(b.free, d)
	if b.merged == b.batchesPerPass {
		return b.finish(), &d.counts, nil
	}
	return nil, nil, nil
}

// finish returns the pass that has mini-batches, which may be fewer than a pass should
// have; nil if none has.
func (b *builder) finish() *Pass {
	pass := b.merging
	if pass == nil {
		return nil
	}
	pass.Keys = b.table.keys
	pass.Batches = pass.Batches[:b.merged]
	b.merging = nil
	return pass
}

// fill returns the next pass.
func (r *Reader) fill(ctx context.Context) (*Pass, *Counts, error) {
	b := r.build
	for {
		for r.ended == nil && len(b.waiting) < b.depth {
			if err := r.draw(ctx); err != nil {
				if ctx.Err() != nil && !errors.Is(err, io.EOF) {
					return nil, nil, err // the next call goes on
				}
				r.ended = err
			}
		}
		if len(b.waiting) > 0 {
			if pass, counts, err := b.merge(ctx); pass != nil || err != nil {
				return pass, counts, err
			}
			continue
		}
		if errors.Is(r.ended, io.EOF) {
			if pass := b.finish(); pass != nil {
				return pass, nil, nil
			}
			if r.rows.counts.Examples == 0 {
				return nil, nil, r.rows.noExamples()
			}
		}
		return nil, nil, r.ended
	}
}

// draw assigns the examples of one mini-batch; of fewer at the end of the input.
func (r *Reader) draw(ctx context.Context) error {
	for {
		d, most := r.build.draft()
		if most == 0 {
			r.build.submit(r.rows.snapshot)
			return nil
		}
		err := r.take(ctx, d, most)
		if errors.Is(err, io.EOF) && d.n > 0 {
			r.build.submit(r.rows.snapshot)
		}
		if err != nil {
			return err
		}
	}
}

// take adds the next examples to a draft, at least one and at most the given number.
func (r *Reader) take(ctx context.Context, d *draft, most int) error {
	w := r.window
	if w == nil {
		b, lo, hi, err := r.rows.run(ctx, most)
		if err == nil {
			d.add(b, lo, hi)
		}
		return err
	}
	if w.drained() {
		if err := r.build.settle(ctx); err != nil {
			return err
		}
		d.move(r.rows.stream, w.block)
		w.restart()
	}
	for !w.draining {
		b, lo, hi, err := r.rows.run(ctx, w.size-len(w.order))
		atEnd := errors.Is(err, io.EOF)
		if err != nil && (!atEnd || len(w.order) == 0) {
			return err // if ctx was cancelled, the next call goes on filling the window
		}
		for e := lo; e < hi; e++ {
			w.add(r.rows.plan, b, e)
		}
		if atEnd || w.full() {
			w.shuffle()
		}
	}
	for _, e := range w.order[w.next:min(w.next+most, len(w.order))] {
		d.add(w.block, int(e), int(e)+1)
		w.next++
	}
	return nil
}
