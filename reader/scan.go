package reader

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
)

// Scan reads the whole input once and returns the mean and standard deviation
// for each standardize step that has none. Sampling and shuffling do not apply, and
// bad rows are not logged, since the reading that follows logs them. Limit, Quarantine
// and the limits on bad rows do apply. The result does not depend on Threads and
// ChunkBytes.
func Scan(ctx context.Context, o Options) (*Statistics, error) {
	o.NegativeSampling = 0
	rows, err := openScan(ctx, o)
	if err != nil {
		return nil, err
	}
	statistics, err := scan(ctx, rows)
	return statistics, AsInputError(ctx, errors.Join(err, rows.close()))
}

// openScan opens the input, from its beginning, for a reading that makes no mini-batches and
// logs nothing.
func openScan(ctx context.Context, o Options) (*rows, error) {
	o.BatchSize, o.Start = max(o.BatchSize, 1), nil
	o.Logger = slog.New(slog.DiscardHandler)
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p, err := compile(&o)
	if err != nil {
		return nil, err
	}
	rows, err := openRows(ctx, &o, p.ForScan())
	return rows, AsInputError(ctx, err)
}

func scan(ctx context.Context, r *rows) (*Statistics, error) {
	p := r.plan
	moments := make([]moments, len(p.Stats))
	for {
		b, e, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i, x := range b.Stats[e*len(moments) : (e+1)*len(moments)] {
			if !math.IsNaN(x) {
				moments[i].add(x)
			}
		}
	}
	if r.counts.Examples == 0 {
		return nil, r.noExamples()
	}
	s := &Statistics{Examples: r.counts.Examples, Positives: r.counts.Positives}
	s.BaseRate = float64(s.Positives) / float64(s.Examples)
	for i, m := range moments {
		s.Columns = append(s.Columns, ColumnStatistics{
			Column: p.Stats[i].Name, Step: p.Stats[i].Step, Count: m.count, Mean: m.mean, Std: m.std(),
		})
	}
	return s, nil
}

// moments computes mean and squared deviations with Welford's update, which needs one pass and
// avoids cancellation. Each product is rounded before it is added (see docs/architecture.md).
type moments struct {
	count   int64
	mean    float64
	squares float64
}

func (m *moments) add(x float64) {
	m.count++
	d := x - m.mean
	m.mean += d / float64(m.count)
	m.squares += float64(d * (x - m.mean))
}

func (m *moments) std() float64 {
	if m.count == 0 {
		return 0
	}
	return math.Sqrt(m.squares / float64(m.count))
}
