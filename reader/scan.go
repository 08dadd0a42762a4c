package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
)

// Statistics is what a first scan of the data found: the numbers that standardize
// steps need and the job file does not give. It is stored with a model, so that
// predictions apply the same transforms as training.
type Statistics struct {
	Examples  int64              `json:"examples"`
	Positives int64              `json:"positives"`
	BaseRate  float64            `json:"base_rate"` // Positives / Examples
	Columns   []ColumnStatistics `json:"columns"`
}

// ColumnStatistics are the mean and the standard deviation (of the population)
// of the numbers that enter the Step-th transform of a column, missing cells
// left out.
type ColumnStatistics struct {
	Column string  `json:"column"`
	Step   int     `json:"step"`
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"`
}

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
	rows, err := openRows(ctx, &o, p.forScan())
	return rows, AsInputError(ctx, err)
}

func scan(ctx context.Context, r *rows) (*Statistics, error) {
	p := r.plan
	moments := make([]moments, len(p.stats))
	for {
		b, e, err := r.next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i, x := range b.stats[e*len(moments) : (e+1)*len(moments)] {
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
			Column: p.stats[i].name, Step: p.stats[i].step, Count: m.count, Mean: m.mean, Std: m.std(),
		})
	}
	return s, nil
}

// moments computes mean and squared deviations with Welford's update, which needs one
// pass and suffers no cancellation. Each product is rounded before it is added (see
// docs/architecture.md).
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

// Apply stores the statistics in the standardize steps that they are about. The
// schema's slices are replaced, not written to, so copies of it stay as they
// were. It fails if the schema has no such step, or if a step still lacks its numbers.
func (s *Statistics) Apply(schema *Schema) error {
	columns := slices.Clone(schema.withDefaults().Columns)
	for i := range columns {
		columns[i].Transforms = slices.Clone(columns[i].Transforms)
	}
	filled := *schema
	filled.Columns = columns
	for _, c := range s.Columns {
		i := filled.column(c.Column)
		if i < 0 || c.Step < 0 || c.Step >= len(columns[i].Transforms) || columns[i].Transforms[c.Step].Kind != TransformStandardize {
			return fmt.Errorf("reader: the statistics of column %q are for its transform %d, which is not a standardize step in the schema", c.Column, c.Step+1)
		}
		t := &columns[i].Transforms[c.Step]
		if !t.HasMeanStd {
			t.Mean, t.Std, t.HasMeanStd = c.Mean, c.Std, true
		}
	}
	if column := filled.unscanned(); column != nil {
		return fmt.Errorf("reader: no statistics for column %q", column.Name)
	}
	*schema = filled
	return nil
}

// NeedsScan says whether a standardize step lacks its mean and std.
func (s *Schema) NeedsScan() bool { return s.unscanned() != nil }

// unscanned is the first column with such a step; nil if there is none.
func (s *Schema) unscanned() *Column {
	for i := range s.Columns {
		for j := range s.Columns[i].Transforms {
			if t := &s.Columns[i].Transforms[j]; t.Kind == TransformStandardize && !t.HasMeanStd {
				return &s.Columns[i]
			}
		}
	}
	return nil
}
