package reader

import (
	"context"
	"errors"
	"io"
	"sync"

	"aibox/reader/internal/faults"
	"aibox/reader/source"
)

// Reader yields the passes of one reading of the data. Next is for one goroutine
// at a time; Counts may be called from any.
type Reader struct {
	options Options
	rows    *rows
	window  *window // nil: the order of the input is kept
	build   *builder
	skip    int64 // examples before the place where reading starts
	ended   error // what ended the input; passes before it may still be with the workers
	err     error // sticky

	files    []source.File // these two are for cursors
	settings map[string]string

	mu struct {
		sync.Mutex
		counts Counts
	}
}

// progress is how far reading has come at the end of a pass.
type progress struct {
	counts Counts
	end    *Cursor
}

// progress is how far reading has come. REQUIRES: no mini-batch is begun.
func (r *Reader) progress() progress { return progress{r.rows.snapshot(), r.cursor()} }

// Open lists the input, checks headers and footers against the schema and starts
// to decode in the background, which goes on until Close. Errors name the file and the
// column; an *OptionsError is about options and schema, an *InputError about the
// contents of the input. When ctx is cancelled, the whole reading ends, not only Open.
func Open(ctx context.Context, o Options) (*Reader, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := compile(&o)
	if err != nil {
		return nil, err
	}
	if name := p.NeedStatistics(); name != "" {
		return nil, faults.OptionsErrorf("reader: column %q is standardized without mean and std: run Scan and apply its statistics to the schema first", name)
	}
	rows, err := openRows(ctx, &o, p)
	if err != nil {
		return nil, AsInputError(ctx, err)
	}
	r := &Reader{options: o, rows: rows, build: newBuilder(&o, rows.stream), files: listed(rows.stream.files), settings: o.settings()}
	if o.Start != nil {
		r.skip, r.build.seq = o.Start.Skip, o.Start.Passes
	}
	if o.ShuffleBuffer > 1 {
		r.window = newWindow(&o)
	}
	r.publish(rows.snapshot())
	return r, nil
}

// TotalRows is how many rows the input has, if all of its files say it, as those of Parquet
// do.
func (r *Reader) TotalRows() (n int64, known bool) {
	n = r.rows.tally.InputRows()
	return max(n, 0), n >= 0
}

// Next returns the next pass, or io.EOF after the last one. The pass belongs to the caller, who may
// give it back with Recycle. The error is a *BadRowsError or a *LostDataError if a limit is
// exceeded, wraps ErrNoExamples if the whole input has no example, or is an *InputError or an error
// of package source. Errors are sticky, except for that of the call's own ctx.
func (r *Reader) Next(ctx context.Context) (*Pass, error) {
	if r.err != nil {
		return nil, r.err
	}
	pass, at, err := r.fill(ctx)
	if !errors.Is(err, io.EOF) {
		err = AsInputError(ctx, err)
	}
	if err != nil && ctx.Err() == nil {
		r.err = err
	}
	if at == nil { // the input has ended, or nothing was read any more
		now := r.progress()
		at = &now
	}
	if pass != nil {
		pass.Bytes, pass.End = at.counts.BytesRead, at.end
	}
	if pass != nil || r.err != nil {
		r.publish(at.counts)
	}
	return pass, err
}

// Counts says how far reading has come, as of the last pass.
func (r *Reader) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.counts
}

// publish makes the counts visible to other goroutines.
func (r *Reader) publish(counts Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.counts = counts
}

// errClosed is what Next returns after Close.
var errClosed = errors.New("reader: closed")

// Close stops decoding, waits for the workers and closes the files. It may be
// called at any time, but not during Next.
func (r *Reader) Close() error {
	if r.err == nil || !errors.Is(r.err, errClosed) {
		r.err = errClosed
	}
	return r.rows.close()
}
