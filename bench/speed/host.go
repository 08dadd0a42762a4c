package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"aibox/configs"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer"
)

// done is the answer to requests for work of the host without an engine.
type done struct {
	Examples int     `json:"examples,omitempty"`
	Rows     int     `json:"rows,omitempty"`
	Passes   int     `json:"passes"`
	Seconds  float64 `json:"seconds"`
}

// eachPass reads the given number of examples and calls f with each pass, until its first error.
func eachPass(ctx context.Context, o reader.Options, examples int64, f func(*reader.Pass) error) error {
	o.Limit = examples
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return err
	}
	defer rd.Close()
	for {
		pass, err := rd.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(pass); err != nil {
			return err
		}
	}
}

// readAlone reads passes of the data and does nothing else.
func readAlone(ctx context.Context, job *configs.Job, examples int64) (d done, err error) {
	bench, err := trainer.NewBench(ctx, job, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return d, err
	}
	defer bench.Table.Close()
	begin := time.Now()
	err = eachPass(ctx, bench.Reader, examples, func(p *reader.Pass) error {
		d.Passes++
		for i := range p.Batches {
			d.Examples += p.Batches[i].N
		}
		return nil
	})
	d.Seconds = time.Since(begin).Seconds()
	return d, err
}

// pullCached pulls and releases the passes of a job, in turn, until the time is over. The table has
// been trained on all of them and has their rows in memory; a table on SSD, in dir, has them in a
// cache of the requested size.
func pullCached(ctx context.Context, job *configs.Job, r *request) (d done, err error) {
	bench, err := trainer.NewBench(ctx, job, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return d, err
	}
	defer bench.Table.Close()
	table := bench.Table
	if r.Output != "" {
		o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: r.Output, Layout: table.Layout(), MemoryBytes: r.CacheBytes}
		if table, err = sparsetable.Open(ctx, o); err != nil {
			return d, err
		}
		defer table.Close()
	}
	var passes [][]uint64
	err = eachPass(ctx, bench.Reader, r.Examples, func(p *reader.Pass) error {
		passes = append(passes, p.Keys)
		return nil
	})
	if err != nil {
		return d, err
	}
	pull := func(keys []uint64) error {
		rows, err := table.Pull(ctx, keys, sparsetable.PullCreate)
		if err == nil {
			rows.Release()
		}
		return err
	}
	for _, keys := range passes { // which makes the rows
		if err := pull(keys); err != nil {
			return d, err
		}
	}
	begin := time.Now()
	for ; d.Seconds < r.Seconds || d.Passes < len(passes); d.Seconds = time.Since(begin).Seconds() {
		keys := passes[d.Passes%len(passes)]
		if err := pull(keys); err != nil {
			return d, err
		}
		d.Rows += len(keys)
		d.Passes++
	}
	if r.Output != "" {
		if s := table.Stats(); s.CacheRows < s.Rows {
			return d, fmt.Errorf("%d of %d rows are in the cache: it needs more than %d bytes", s.CacheRows, s.Rows, r.CacheBytes)
		}
	}
	return d, nil
}
