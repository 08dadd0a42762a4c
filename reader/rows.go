package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"aibox/internal/humanize"
	"aibox/reader/internal/examples"
	"aibox/reader/internal/faults"
	"aibox/reader/internal/hashes"
)

// rows is the sequence of good examples in the order of the input, after sampling and the limit.
// This is where parallel decoding becomes sequential again. All counting happens here, so line
// numbers, counts and the row at which a limit is exceeded do not depend on how the input was cut.
type rows struct {
	options *Options
	plan    *examples.Plan
	stream  *stream
	tally   *faults.Tally
	counts  Counts
	span    span

	at    Position // behind the last example that run returned
	begun bool     // a block was taken from the stream
	block *block   // nil: get the next one
	e     int      // next row of the block
	bad   int      // next bad row of the block
	line  int64    // number of the block's first line
	file  *inputFile
	done  bool // the end was reached, and the limit on the share of bad rows applied
}

func openRows(ctx context.Context, o *Options, p *examples.Plan) (*rows, error) {
	files, total, err := openFiles(ctx, o, p)
	if err != nil {
		return nil, err
	}
	r := &rows{
		options: o, plan: p, stream: newStream(ctx, o, p, files), span: spanOf(o),
		tally: faults.New(
			faults.Limits{BadRows: o.MaxBadRows, BadFraction: o.MaxBadFraction, LostFraction: o.MaxLostFraction, LineBytes: o.MaxLineBytes},
			faults.Input{Bytes: total, Files: len(files), Mixed: mixed(files)}, o.Quarantine, o.QuarantineRows, o.Logger,
		),
	}
	start := &Position{Line: 1, State: faults.State{InputRows: rowsInFooters(files)}}
	if at := startOf(o); at != nil {
		start = at
	}
	r.restore(start)
	r.counts.BytesTotal = total
	return r, nil
}

// next returns the next example: row e of a block that is valid until the next
// call. It returns io.EOF at the end.
func (r *rows) next(ctx context.Context) (b *block, e int, err error) {
	b, e, _, err = r.run(ctx, 1)
	return b, e, err
}

// run returns the next examples, at most the given number of them: rows lo to hi-1 of a
// block that is valid until the next call, unless the caller retains it. It returns
// io.EOF at the end.
func (r *rows) run(ctx context.Context, most int) (b *block, lo, hi int, err error) {
	if r.done {
		return nil, 0, 0, io.EOF
	}
	if limit := r.options.Limit; limit > 0 {
		if r.counts.Examples >= limit {
			return nil, 0, 0, r.end()
		}
		most = int(min(int64(most), limit-r.counts.Examples))
	}
	for {
		left := r.span.most - r.counts.Examples - r.counts.Dropped
		if r.span.most >= 0 && left <= 0 && r.span.skip == 0 {
			return nil, 0, 0, r.end()
		}
		if r.block == nil {
			if err := r.advance(ctx); errors.Is(err, io.EOF) {
				if err := r.tally.EndFile(r.counts.Rows); err != nil {
					return nil, 0, 0, err
				}
				return nil, 0, 0, r.end()
			} else if err != nil {
				return nil, 0, 0, err
			}
		}
		b := r.block
		for r.bad < len(b.bad.Entries) && int(b.bad.Entries[r.bad].At) == r.e {
			bad := &b.bad.Entries[r.bad]
			r.bad++
			if r.span.skip == 0 {
				r.countRows(1)
				if err := r.tally.Bad(b.bad.Describe(bad, b.file.URI, r.line), r.counts.Rows); err != nil {
					return nil, 0, 0, err
				}
			}
			if bad.Length > 0 {
				open := b.open && r.bad == len(b.bad.Entries)
				r.tally.LongLine(r.line+int64(bad.Line), bad.Offset, bad.Length, open)
			}
		}
		if r.e == b.N {
			if err := r.leave(b); err != nil {
				return nil, 0, 0, err
			}
			continue
		}
		until := b.N // the next bad row
		if r.bad < len(b.bad.Entries) {
			until = int(b.bad.Entries[r.bad].At)
		}
		if r.span.skip > 0 {
			n := min(int64(until-r.e), r.span.skip)
			r.e, r.span.skip = r.e+int(n), r.span.skip-n
			continue
		}
		if r.span.most >= 0 {
			until = int(min(int64(until), int64(r.e)+left))
		}
		if lo, hi := r.take(b, until, most); lo < hi {
			r.at.Skip += int64(hi - lo)
			return b, lo, hi, nil
		}
	}
}

// take counts good rows of the block, from the next one on and before until, and returns
// the first run of them that sampling keeps; lo == hi if it keeps none.
func (r *rows) take(b *block, until, most int) (lo, hi int) {
	lo = r.e
	switch {
	case r.plan.KeepBad && b.Blanks[lo]: // counted as a bad row
		r.e++
		r.counts.Examples++
		return lo, r.e
	case r.plan.KeepBad:
		until = lo + 1 // the next row may be a blank
	}
	if r.options.NegativeSampling < 1 {
		for lo < until && !r.keep(b.Labels[lo]) {
			lo++
		}
		hi = lo
		if lo < until {
			hi++ // keep has counted it
		}
		r.countRows(hi - r.e)
		r.e = hi
		return lo, hi
	}
	hi = min(until, lo+most)
	n := hi - lo
	r.countRows(n)
	r.counts.Examples += int64(n)
	for _, label := range b.Labels[lo:hi] {
		if label == 1 {
			r.counts.Positives++
		}
	}
	r.e = hi
	return lo, hi
}

// countRows counts rows of the input.
func (r *rows) countRows(n int) {
	r.counts.Rows += int64(n)
	r.tally.Rows(n)
}

// soFar is what was read of the input.
func (r *rows) soFar() faults.SoFar {
	return faults.SoFar{Rows: r.counts.Rows, Bytes: r.counts.BytesRead}
}

// advance gets the next block.
func (r *rows) advance(ctx context.Context) error {
	b, err := r.stream.next(ctx)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case !r.begun && (err != nil || b.file != r.file || r.stream.current.number != r.at.Unit):
		return errNoSuchPlace // restore has set file and unit
	case err != nil:
		return err
	}
	r.begun = true
	r.block, r.e, r.bad = b, 0, 0
	if b.file != r.file {
		if err := r.tally.Enter(b.file.File, r.soFar()); err != nil {
			return err
		}
		r.file, r.line = b.file, 1
	}
	if b.head >= 0 { // the first block of its unit
		r.at = r.position()
		r.tally.Head(b.head, b.headOpen)
	}
	return nil
}

// leave ends a block: it counts the block's bytes as read, and the loss after it, if
// there is one.
func (r *rows) leave(b *block) error {
	r.counts.BytesRead += b.stored
	r.tally.Read(b.stored, b.textEnd)
	var err error
	if d := b.lost; d != nil && r.span.skip == 0 {
		err = r.tally.Lose(r.line, d, r.soFar())
	}
	r.line += b.lines
	r.stream.release(b)
	r.block = nil
	return err
}

// keep counts a good example and says whether sampling keeps it.
func (r *rows) keep(label float32) bool {
	number := uint64(r.counts.Examples + r.counts.Dropped)
	o := r.options
	if label == 0 && o.NegativeSampling < 1 &&
		hashes.Unit(o.Seed, hashes.Sampling, uint64(o.Epoch), number) >= o.NegativeSampling {
		r.counts.Dropped++
		return false
	}
	r.counts.Examples++
	if label == 1 {
		r.counts.Positives++
	}
	return true
}

// refuse turns the last row, which had counted as good, into a bad row. It is for raw
// plans only.
func (r *rows) refuse(reason faults.Reason, detail, row string) error {
	place := r.block.places[r.e-1]
	r.counts.Examples--
	return r.tally.Bad(BadRow{
		URI: r.block.file.URI, Line: r.line + int64(place.line), Offset: place.offset, Reason: reason, Detail: detail, Row: row,
	}, r.counts.Rows)
}

// end applies the limits on bad rows and losses a last time.
func (r *rows) end() error {
	r.done = true
	so := r.soFar()
	if r.block != nil { // Limit ends reading within a unit
		so.Bytes += r.stream.current.stored
	}
	if err := r.tally.Judge(so); err != nil {
		return err
	}
	return io.EOF
}

// noExamples is the error for a reading without any example; it says what happened to the rows.
func (r *rows) noExamples() error {
	uris := strings.Join(r.options.URIs, ", ")
	switch c := r.snapshot(); {
	case len(c.Lost) > 0:
		return fmt.Errorf("reader: %s: %s, none of them good: data are lost: %s: %w", uris, humanize.Count(c.Rows, "row"), c.Lost[0], ErrNoExamples)
	case c.Rows == 0:
		return fmt.Errorf("reader: %s: no rows: %w", uris, ErrNoExamples)
	case c.Dropped > 0:
		return fmt.Errorf("reader: %s: %d rows, of which %d are bad and %d negatives that sampling dropped: %w",
			uris, c.Rows, c.BadRows, c.Dropped, ErrNoExamples)
	default:
		return fmt.Errorf("reader: %s: %s, none of them good: %s: %w", uris, humanize.Count(c.Rows, "row"), r.tally.Worst(), ErrNoExamples)
	}
}

// snapshot returns the counts.
func (r *rows) snapshot() Counts {
	c := r.counts
	c.Counts = r.tally.Counts()
	return c
}

func (r *rows) close() error { return r.stream.close() }
