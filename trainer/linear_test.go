package trainer

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"aibox/trainer/densefile"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/model"
)

// TestLinearOptimizer checks that giving linear weights the optimizer of the rows changes nothing,
// and that another optimizer gives the same model with both kinds of tables, and is continued by a
// warm start.
func TestLinearOptimizer(t *testing.T) {
	for _, kind := range []string{"fm", "wide_deep", "deepfm"} {
		sparse := []string{"data.columns[1]={name: D1, role: ignore}", "data.columns[2]={name: D2, role: ignore}", "data.columns[3]={name: D3, role: ignore}"}
		plain := train(t, job(t, kind, sparse...)).Digest
		if same := train(t, job(t, kind, append(sparse, "optimizer.linear={kind: adagrad}")...)).Digest; same != plain {
			t.Errorf("%s: %s with Adagrad for linear weights, too, %s without", kind, same, plain)
		}
		const ftrl = "optimizer.linear={kind: ftrl, learning_rate: 0.1, ftrl_l1: 0.01}"
		first := job(t, kind, ftrl)
		want := train(t, first).Digest
		if want == train(t, job(t, kind)).Digest {
			t.Errorf("%s: FTRL for linear weights changes nothing", kind)
		}
		zeros := job(t, kind, "optimizer.linear={kind: ftrl, ftrl_l1: 1000}")
		train(t, zeros)
		l := load(t, zeros.Output.ModelDir)
		dense := l.Saved.Tensor(densefile.ParamPrefix + model.LinearWeight).Data
		if len(dense) < 3 || slices.ContainsFunc(dense, func(w float32) bool { return w != 0 }) {
			t.Errorf("%s: the weights of dense features do not feel the L1 penalty: %v", kind, dense)
		}
		dense = load(t, first.Output.ModelDir).Saved.Tensor(densefile.ParamPrefix + model.LinearWeight).Data
		if !slices.ContainsFunc(dense, func(w float32) bool { return w != 0 }) {
			t.Errorf("%s: the weights of dense features learn nothing", kind)
		}
		if got := train(t, job(t, kind, onSSD(ftrl)...)).Digest; got != want {
			t.Errorf("%s: %s on SSD, %s in memory", kind, got, want)
		}
		train(t, job(t, kind, ftrl, "sparse_table.value_format=bfloat16"))
		for _, next := range []struct {
			set   []string
			warns bool
		}{{[]string{ftrl}, false}, {[]string{ftrl, "model.embedding_dim=6"}, false}, {[]string{"optimizer.linear={kind: adam}"}, true}, {nil, true}} {
			var log strings.Builder
			j := job(t, kind, append(next.set, "training.warm_start="+first.Output.ModelDir)...)
			if _, err := Train(context.Background(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
				t.Fatalf("%s, %v: %v", kind, next.set, err)
			}
			if strings.Contains(log.String(), "another row optimizer") != next.warns {
				t.Errorf("%s, %v: %s", kind, next.set, log.String())
			}
		}
	}
}

// TestLinearOptimizerOfKinds checks that models without linear weights beside embeddings have no
// such optimizer.
func TestLinearOptimizerOfKinds(t *testing.T) {
	for _, kind := range []string{"lr", "dlrm"} {
		if _, err := testjobs.Parse(kind, []string{"data.train=[x]", "output.model_dir=y", "optimizer.linear={kind: ftrl}"}); err == nil {
			t.Errorf("%s: no fault", kind)
		}
	}
	j, err := testjobs.Parse("deepfm", []string{"data.train=[x]", "output.model_dir=y", "optimizer.linear={learning_rate: 0.2, l2: 1e-4}"})
	if err != nil || j.Optimizer.Linear.Kind != "adagrad" || j.Optimizer.Linear.LearningRate != 0.2 || j.Optimizer.Linear.L2 != 1e-4 || j.Optimizer.Linear.Epsilon != 1e-8 {
		t.Errorf("%+v, %v", j, err)
	}
}
