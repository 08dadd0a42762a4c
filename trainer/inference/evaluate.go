package inference

import (
	"context"
	"errors"
	"fmt"

	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/flow"
	"aibox/trainer/metrics"
	"aibox/trainer/program"
	"aibox/trainer/report"
)

// maxExactExamples bounds the memory of an exact AUC. With more examples, the evaluation uses the
// streaming AUC, and its report says so with an error bound. At 4 to 8 bytes per example, and 16
// more with groups, it is at most 1.5 GiB.
const maxExactExamples = 64 << 20

// Runner runs an engine over a reader without training. The engine belongs to a saved model or to
// one that is being trained.
type Runner struct {
	flow.Stages
	Status *report.Status
	Shift  float32 // log of the share of negatives that training kept

	// each, if set, gets the logits of every mini-batch before they are counted.
	each func(b *reader.Batch, logits []float32) error
}

// Measure evaluates everything that r yields, which must have labels.
func (ev *Runner) Measure(ctx context.Context, r *reader.Reader, groups bool) (metrics.Report, error) {
	return ev.run(ctx, r, true, groups)
}

// run evaluates everything that r yields. labelled says whether the examples have labels. Without
// labels (as in predict) run computes no metrics, and each has to count the examples.
func (ev *Runner) run(ctx context.Context, r *reader.Reader, labelled, groups bool) (metrics.Report, error) {
	acc := metrics.New(metrics.Options{
		Exact: true, MaxExactExamples: maxExactExamples, Groups: groups, LogitShift: ev.Shift,
	})
	seen := int64(0)   // examples in mini-batches whose results have come
	var expected []int // sizes of the mini-batches whose results are outstanding
	f := flow.Flow{
		Stages: ev.Stages, Reader: r, Mode: sparsetable.PullLookup,
		Batch: func(b *reader.Batch) error {
			expected = append(expected, b.N)
			return ev.Engine.Infer(engine.Batch{Batch: b}, func(res *engine.Result) error {
				b := res.Batch
				if ev.each != nil {
					if err := ev.each(b, res.Logits); err != nil {
						return err
					}
				}
				if labelled {
					if err := acc.Add(res.Logits, b.Labels, b.Weights, b.Groups); err != nil {
						return err
					}
				}
				ev.Status.Batch(res.Step, b.N)
				seen, expected = seen+int64(b.N), expected[1:]
				return nil
			})
		},
		Hooks: flow.Hooks{
			Started: ev.Status.Pipeline,
			PassDone: func(p *reader.Pass) error {
				ev.Status.Bytes(p.Bytes)
				return nil
			},
		},
	}
	if _, err := f.Run(ctx); err != nil {
		if errors.Is(err, program.ErrNotFinite) && len(expected) > 0 {
			err = fmt.Errorf("mini-batch of the examples %d to %d: %w", seen+1, seen+int64(expected[0]), err)
		}
		return metrics.Report{}, err
	}
	return acc.Report(), nil
}
