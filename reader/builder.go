package reader

import (
	"context"

	"aibox/reader/internal/examples"
	"aibox/reader/internal/numbering"
)

// builder makes passes of examples. The work is divided so that as little as possible is left to
// the single goroutine that calls Reader.Next:
//
//   - That goroutine assigns the examples, in the order of the input, to drafts of
//     mini-batches: only block and row numbers.
//   - Workers make the mini-batches, several at a time: they copy the examples and number
//     the keys of one mini-batch by themselves.
//   - The goroutine takes the mini-batches back in their order and numbers their unique
//     keys within the pass, with the help of workers that wait; see package numbering.
//
// Drafts of the next pass may be with the workers while a pass is completed.
type builder struct {
	plan           *examples.Plan
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

	numbers *numbering.Merger
	merging *Pass // has the mini-batches that were taken back
	merged  int
	helper  batchMaker
}

func newBuilder(o *Options, s *stream) *builder {
	return &builder{
		plan: s.plan, stream: s, pool: &passPool{most: maxFreePasses}, batchSize: o.BatchSize, batchesPerPass: o.BatchesPerPass, depth: cap(s.drafts),
		numbers: numbering.NewMerger(s.idle),
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

// submit hands the open draft to the workers. now says how far reading has come with it.
func (b *builder) submit(now func() progress) {
	d := b.open
	b.open = nil
	if b.filling == nil {
		b.filling, b.filled = newPass(b.pool, b.seq, b.batchesPerPass), 0
		b.seq++
	}
	d.pass, d.at, d.made = b.filling, b.filled, false
	if b.filled++; b.filled == b.batchesPerPass {
		d.progress = now()
		b.filling = nil
	}
	b.waiting = append(b.waiting, d)
	b.stream.drafts <- d // there is room: at most depth drafts wait
}

// await waits until a draft's mini-batch is made. Meanwhile it makes other mini-batches itself, so
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

// waitForBatches waits until all waiting mini-batches are made.
func (b *builder) waitForBatches(ctx context.Context) error {
	for _, d := range b.waiting {
		if err := b.await(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// merge takes the oldest mini-batch back. If that completes a pass, it returns the pass, and the
// progress of reading at its end.
func (b *builder) merge(ctx context.Context) (*Pass, *progress, error) {
	d := b.waiting[0]
	if err := b.await(ctx, d); err != nil {
		return nil, nil, err
	}
	b.waiting = append(b.waiting[:0], b.waiting[1:]...)
	pass := d.pass
	if d.at == 0 {
		b.merging, b.merged = pass, 0
		b.numbers.Begin(pass.Keys)
	}
	batch := &pass.Batches[d.at]
	batch.Rows = room(batch.Rows, len(d.keys))[:len(d.keys)]
	b.numbers.Number(d.keys, batch.Rows)
	b.merged++
	d.pass, d.n, d.keys = nil, 0, d.keys[:0]
	b.free = append(b.free, d)
	if b.merged == b.batchesPerPass {
		return b.finish(), &d.progress, nil
	}
	return nil, nil, nil
}

// finish returns the last pass, which may have fewer mini-batches than others; nil if it has none.
func (b *builder) finish() *Pass {
	pass := b.merging
	if pass == nil {
		return nil
	}
	pass.Keys = b.numbers.Keys()
	pass.Batches = pass.Batches[:b.merged]
	b.merging = nil
	return pass
}
