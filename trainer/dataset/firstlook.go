package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"aibox/internal/fixmath"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/jobparts"
)

// firstExamples is how many training examples are read before training begins, in a fraction of a
// second, instead of a scan of data that may be terabytes. If the share of positives is 0.001, it
// is then known to within 12 %.
const firstExamples = 1 << 16

// emptyExamples is how many examples without a value in a column make it likely that the column is
// empty because of a fault in how the log is written.
const emptyExamples = 1000

// firstChunkBytes bounds what is read beyond the first examples. It is large enough for HDFS, where
// each chunk is a connection.
const firstChunkBytes = 1 << 20

// hugeFeature is a value of a dense feature from which gradients are so large that usual learning
// rates fail.
const hugeFeature = 1000

// firstExamples returns the reader's options for the first training examples, in the order of the
// files. They set no limits for bad rows and losses, which training checks.
func (d *Data) firstExamples() reader.Options {
	limit := int64(firstExamples)
	for _, most := range []int64{d.job.Data.Limit, d.job.Training.MaxExamples} {
		if most > 0 {
			limit = min(limit, most)
		}
	}
	o := jobparts.Unjudged(d.TrainOptions(0, limit))
	o.ShuffleBuffer, o.GroupBy = 0, ""
	o.ChunkBytes = min(o.ChunkBytes, firstChunkBytes)
	return o
}

// FirstLook summarizes the first training examples.
type FirstLook struct {
	Examples             int64
	positives, negatives float64   // sums of their weights
	largest              []float64 // largest absolute value of each dense feature
	smallest             []float64 // likewise
	values               []int64   // number of values of each sparse field
}

// FirstLook reads the first examples, which have the given numbers of dense features and sparse
// fields. There may be no examples.
//
// The result depends only on the job and the beginning of its data, not on threads, mini-batches or
// passes.
func (d *Data) FirstLook(ctx context.Context, dense, fields int) (*FirstLook, error) {
	l := &FirstLook{largest: make([]float64, dense), smallest: slices.Repeat([]float64{math.Inf(1)}, dense), values: make([]int64, fields)}
	if err := l.read(ctx, d.firstExamples()); err != nil {
		return nil, fmt.Errorf("data.train: %w", err)
	}
	return l, nil
}

// read adds the examples that o reads.
func (l *FirstLook) read(ctx context.Context, o reader.Options) error {
	rd, err := reader.Open(ctx, o)
	if err != nil {
		return err
	}
	for err == nil {
		var pass *reader.Pass
		if pass, err = rd.Next(ctx); err == nil {
			for i := range pass.Batches {
				l.add(&pass.Batches[i])
			}
			pass.Recycle()
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, reader.ErrNoExamples) {
		err = nil
	}
	return errors.Join(err, rd.Close())
}

// add adds the examples of a mini-batch one by one, so that the sums do not depend on its size.
func (l *FirstLook) add(batch *reader.Batch) {
	l.Examples += int64(batch.N)
	for i, label := range batch.Labels {
		weight := 1.0
		if batch.Weights != nil {
			weight = float64(batch.Weights[i])
		}
		if label == 1 {
			l.positives += weight
		} else {
			l.negatives += weight
		}
	}
	for i, x := range batch.Dense {
		c := i % len(l.largest)
		l.largest[c] = max(l.largest[c], math.Abs(float64(x)))
		l.smallest[c] = min(l.smallest[c], math.Abs(float64(x)))
	}
	for i, end := range batch.Offsets[1:] {
		l.values[i%len(l.values)] += int64(end - batch.Offsets[i])
	}
}

// LogOdds returns the logarithm of the odds of a positive. Half an example of mean weight is added
// to either class, so that it is finite if one class is absent. It is 0 if both are.
func (l *FirstLook) LogOdds() float64 {
	total := l.positives + l.negatives
	if !(total > 0) {
		return 0
	}
	half := total / float64(2*l.Examples)
	return fixmath.Log(l.positives+half) - fixmath.Log(l.negatives+half)
}

// Rate returns the share of positives, NaN without examples.
func (l *FirstLook) Rate() float64 { return l.positives / (l.positives + l.negatives) }

// Warnings returns warnings about the columns. dense are the names of the dense features, fields
// those of the sparse fields. Of a model that continues an earlier one, the magnitude of its
// features is known to be acceptable.
func (l *FirstLook) Warnings(columns []reader.Column, dense, fields []string, continues bool) (warnings []string) {
	if l.Examples == firstExamples && l.positives == 0 {
		warnings = append(warnings, fmt.Sprintf("none of the first %d training examples is positive; check data.label, and whether the data are sorted by it", l.Examples))
	}
	place := make(map[string]int, len(dense))
	for i, name := range dense {
		place[name] = i
	}
	if empty := l.empty(dense, fields, place); len(empty) > 0 && l.Examples >= emptyExamples {
		warnings = append(warnings, fmt.Sprintf("%s empty in all of the first %d training examples; unless that is expected, check what writes the log", subject(empty), l.Examples))
	}
	for _, c := range columns {
		at, dense := place[c.Name]
		if !continues && dense && c.Role == reader.RoleDense && len(c.Transforms) == 0 && l.largest[at] > hugeFeature {
			warnings = append(warnings, fmt.Sprintf("column %s has values up to %.3g and no transform; training is likely to diverge, or to learn little: give it transform: [standardize] or [log1p]", c.Name, l.largest[at]))
		}
	}
	return warnings
}

// empty returns the columns without any value: sparse fields without features, and dense columns
// whose indicator is 1 in all examples. place has the indices of the dense features.
func (l *FirstLook) empty(dense, fields []string, place map[string]int) (columns []string) {
	for _, name := range dense {
		if at, has := place[rowschema.IndicatorName(name)]; has && l.smallest[at] == 1 {
			columns = append(columns, name)
		}
	}
	for i, name := range fields {
		if l.values[i] == 0 {
			columns = append(columns, name)
		}
	}
	return columns
}

// subject begins a sentence about columns, of which it names the first few.
func subject(columns []string) string {
	const named = 10
	switch n := len(columns); {
	case n == 1:
		return "column " + columns[0] + " is"
	case n > named:
		return fmt.Sprintf("columns %s and %d more are", strings.Join(columns[:named], ", "), n-named)
	}
	return "columns " + strings.Join(columns, ", ") + " are"
}
