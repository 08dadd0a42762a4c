package reader

import (
	"context"
	"errors"
	"io"
)

// This file decides which examples go into which pass: it takes them from rows, through the window
// if there is one, assigns them to the builder's drafts, and takes passes back.

// fill returns the next pass.
func (r *Reader) fill(ctx context.Context) (*Pass, *progress, error) {
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
			if pass, at, err := b.merge(ctx); pass != nil || err != nil {
				return pass, at, err
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

// draw assigns the examples of one mini-batch, or fewer at the end of the input.
func (r *Reader) draw(ctx context.Context) error {
	for {
		d, most := r.build.draft()
		if most == 0 {
			r.build.submit(r.progress)
			return nil
		}
		err := r.take(ctx, d, most)
		if errors.Is(err, io.EOF) && d.n > 0 {
			r.build.submit(r.progress)
		}
		if err != nil {
			return err
		}
	}
}

// take adds the next examples to a draft, at least one and at most the given number.
func (r *Reader) take(ctx context.Context, d *draft, most int) error {
	if err := r.skipTaken(ctx); err != nil {
		return err
	}
	w := r.window
	if w == nil {
		b, lo, hi, err := r.rows.run(ctx, most)
		if err == nil {
			d.add(b, lo, hi)
		}
		return err
	}
	if w.drained() {
		if err := r.build.waitForBatches(ctx); err != nil {
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
		if len(w.order) == 0 {
			w.start = r.rows.at
			w.start.Skip -= int64(hi - lo)
		}
		for e := lo; e < hi; e++ {
			w.add(r.rows.plan, b, e)
		}
		if atEnd || w.full() {
			w.shuffle()
			if w.next > len(w.order) {
				return errNoSuchPlace
			}
		}
	}
	for _, e := range w.order[w.next:min(w.next+most, len(w.order))] {
		d.add(w.block, int(e), int(e)+1)
		w.next++
	}
	return nil
}

// skipTaken skips the examples between the start of a resumed reading's first unit and the place
// that the earlier reading had reached.
func (r *Reader) skipTaken(ctx context.Context) error {
	for r.skip > 0 {
		_, lo, hi, err := r.rows.run(ctx, int(r.skip))
		if errors.Is(err, io.EOF) {
			return errNoSuchPlace
		} else if err != nil {
			return err
		}
		r.skip -= int64(hi - lo)
	}
	return nil
}
