package trainer

import (
	"context"
	"math"
	"slices"
	"testing"

	"aibox/trainer/densefile"
)

const averaging = "optimizer.dense.averaging=0.9"

// TestAveraging checks that a model has the averages of the parameters after each step, that
// training itself is the same as without averages, and that a warm start from the model continues
// without them.
func TestAveraging(t *testing.T) {
	for kind, set := range map[string][]string{"lr": nil, "deepfm": {"optimizer.linear={kind: adagrad}"}, "dlrm": append([]string{bf16}, extras["dlrm"]...)} {
		t.Run(kind, func(t *testing.T) {
			set = append(set, "pipeline.batches_per_pass=1", averaging)
			j := job(t, kind, set...)
			var want [][]float64 // of each parameter
			opts := quiet
			opts.afterPass = func(_ context.Context, r *run) error {
				step := r.state.Engine.Step
				for i, p := range r.model.Params() {
					if step == 1 {
						want = append(want, make([]float64, len(p.Data)))
					}
					share := max(0.1, 1/float64(step))
					for k, w := range p.Data {
						want[i][k] += share * (float64(w) - want[i][k])
					}
				}
				return nil
			}
			if _, err := Train(t.Context(), j, opts); err != nil {
				t.Fatal(err)
			}
			plain := job(t, kind, append(set, "optimizer.dense.averaging=0")...)
			train(t, plain)
			saved, other := load(t, j.Output.ModelDir), load(t, plain.Output.ModelDir)
			moved := false
			for i, p := range saved.Network.Params() {
				for k, a := range p.Data {
					if math.Abs(float64(a)-want[i][k]) > 1e-5*(1+math.Abs(want[i][k])) {
						t.Fatalf("%s[%d] is %v, the average of the steps %v", p.Name, k, a, want[i][k])
					}
				}
				last := saved.Saved.Tensor(densefile.OptimizerPrefix + p.Name + "/unaveraged")
				if last == nil || !slices.Equal(last.Data, other.Network.Params()[i].Data) {
					t.Errorf("%s: averages change what training does", p.Name)
				}
				moved = moved || !slices.Equal(last.Data, p.Data)
			}
			if !moved {
				t.Error("the averages are the parameters, the test tests nothing")
			}

			// A next night begins with the averages if it has none itself, and with both otherwise.
			still := append(set, "optimizer.schedule={warmup_steps: 100000000}", "data.limit=64")
			for _, next := range []string{"optimizer.dense.averaging=0", averaging} {
				again := job(t, kind, append(slices.Clip(still), next)...)
				again.Training.WarmStart = j.Output.ModelDir
				train(t, again)
				now := load(t, again.Output.ModelDir)
				for _, p := range now.Network.Params() {
					before, after := saved.Saved.Tensor(densefile.ParamPrefix+p.Name).Data, now.Saved.Tensor(densefile.ParamPrefix+p.Name).Data
					// With averages, one more step is part of them.
					if next == averaging {
						last := saved.Saved.Tensor(densefile.OptimizerPrefix + p.Name + "/unaveraged").Data
						before = slices.Clone(before)
						for k := range before {
							before[k] += 0.1 * (last[k] - before[k])
						}
					}
					for k := range before {
						if math.Abs(float64(before[k]-after[k])) > 1e-5 {
							t.Fatalf("%s, %s[%d]: %v, want %v", next, p.Name, k, after[k], before[k])
						}
					}
				}
			}
		})
	}
}

// TestAveragingBegins checks that if a model starts from one without averages, its averages begin
// with that model's parameters. Averages of new parameters begin with their initial values, that of
// the bias with the log odds.
func TestAveragingBegins(t *testing.T) {
	first := job(t, "lr")
	train(t, first)
	from := load(t, first.Output.ModelDir)
	for kind, fresh := range map[string]bool{"lr": false, "wide_deep": true} {
		j := job(t, kind, averaging, "optimizer.schedule={warmup_steps: 100000000}", "data.limit=64", "model.initial_bias=-3", "training.accept_diverged=true")
		j.Training.WarmStart = first.Output.ModelDir
		train(t, j)
		l := load(t, j.Output.ModelDir)
		bias := l.Network.OutputBias()
		want := float32(-3)
		if !fresh {
			want = from.Network.OutputBias().Data[0]
		}
		if math.Abs(float64(bias.Data[0]-want)) > 1e-3 {
			t.Errorf("%s: the bias is %v, want %v", kind, bias.Data[0], want)
		}
	}
}
