package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"aibox/internal/fixmath"
	"aibox/reader"
	"aibox/trainer/densefile"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/modeldir"
)

// firstExamples is how many training examples are looked at before training begins, in a
// fraction of a second, instead of a scan of data that may be terabytes. In data with a share of
// positives of 0.001, that share is then known to 12 %.
const firstExamples = 1 << 16

// firstChunkBytes bounds what is read beyond the first examples, and is large enough for HDFS, where
// each chunk is a connection.
const firstChunkBytes = 1 << 20

// hugeFeature is a value of a dense feature that makes gradients so large that usual learning
// rates fail.
const hugeFeature = 1000

// initBias looks at the first examples and sets the output bias of a model that does not take it
// over from an earlier one.
//
// The bias depends on the job and the beginning of its data alone: not on threads, mini-batches
// and passes. A run that goes on from a snapshot has it in its parameters.
func (r *run) initBias(ctx context.Context) error {
	bias := r.model.OutputBias()
	if p := r.models.previous; p != nil && slices.ContainsFunc(p.Dense, func(t modeldir.Tensor) bool { return t.Name == densefile.ParamPrefix+bias.Name }) {
		return nil
	}
	l := firstLook{largest: make([]float64, len(r.Spec.Dense))}
	if err := l.read(ctx, r.firstExamples()); err != nil {
		return fmt.Errorf("data.train: %w", err)
	}
	r.warnOf(&l)
	value, given := r.job.Model.InitialBias.Number()
	if !given {
		value = l.logOdds()
		r.log.Info("the output bias starts at the log odds of the first examples", "initial_bias", metrics.Rounded(metrics.Value(value)), "examples", l.examples, "base_rate", metrics.Rounded(metrics.Value(l.rate())))
	}
	bias.Data[0] = float32(value)
	r.state.Engine.Dense.Average(bias)[0] = float32(value)
	r.state.InitialBias = &value
	return nil
}

// firstExamples are the reader's options for the first training examples, in the order of the
// files. Training judges bad rows and losses.
func (r *run) firstExamples() reader.Options {
	limit := int64(firstExamples)
	for _, most := range []int64{r.job.Data.Limit, r.job.Training.MaxExamples} {
		if most > 0 {
			limit = min(limit, most)
		}
	}
	o := jobparts.Unjudged(r.trainOptions(0, limit))
	o.ShuffleBuffer, o.GroupBy = 0, ""
	o.ChunkBytes = min(o.ChunkBytes, firstChunkBytes)
	return o
}

// firstLook is what the first training examples are like.
type firstLook struct {
	examples             int64
	positives, negatives float64   // their weights
	largest              []float64 // of each dense feature, without its sign
}

// read adds the examples that o reads. There may be none.
func (l *firstLook) read(ctx context.Context, o reader.Options) error {
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

// add adds the examples of a mini-batch one by one, so that the sums do not depend on its
// size.
func (l *firstLook) add(batch *reader.Batch) {
	l.examples += int64(batch.N)
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
	}
}

// logOdds is the logarithm of the odds of a positive. Half an example of mean weight is added
// to either class, so that it is finite if one of them is absent. It is 0 if both are.
func (l *firstLook) logOdds() float64 {
	total := l.positives + l.negatives
	if !(total > 0) {
		return 0
	}
	half := total / float64(2*l.examples)
	return fixmath.Log(l.positives+half) - fixmath.Log(l.negatives+half)
}

// rate is the share of the positives, NaN without examples.
func (l *firstLook) rate() float64 { return l.positives / (l.positives + l.negatives) }
