package trainer

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/trainer/engine"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
)

const bf16 = "engine.precision=bf16"

// TestBF16HoweverItIsRun checks that in bfloat16, too, the same job, seed and data give the same
// model. It differs from the model in float32 if layers have more than one unit.
func TestBF16HoweverItIsRun(t *testing.T) {
	for _, kind := range testjobs.Kinds() {
		t.Run(kind, func(t *testing.T) {
			base := append(slices.Clone(extras[kind]), bf16)
			want := train(t, job(t, kind, base...)).Digest
			float32s := train(t, job(t, kind, extras[kind]...)).Digest
			if shallow := kind == "lr" || kind == "fm"; (want == float32s) != shallow {
				t.Errorf("the digest is %s, in float32 it is %s", want, float32s)
			}
			for _, v := range []variant{
				{name: "one thread", set: []string{"pipeline.compute_threads=1"}},
				{name: "two threads", set: []string{"pipeline.compute_threads=2"}},
				{name: "many processors", procs: 5, set: []string{"pipeline.compute_threads=5"}},
				{name: "portable kernels", level: "portable"},
				{name: "on SSD", evicts: true, set: []string{"sparse_table.kind=ssd", "pipeline.batches_per_pass=1"}},
			} {
				t.Run(v.name, func(t *testing.T) { v.check(t, kind, base, want) })
			}
		})
	}
}

// TestModelKeepsItsPrecision checks that a model is evaluated in the precision in which it was
// trained, with the results that training reported, and that the evaluation says which precision
// that is.
func TestModelKeepsItsPrecision(t *testing.T) {
	j := job(t, "dlrm", "model.bottom_layers=[8, 4]", bf16)
	s := train(t, j)
	in, err := inference.Inspect(t.Context(), j.Output.ModelDir, false, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func(set ...string) *inference.Evaluation {
		t.Helper()
		e, err := load(t, j.Output.ModelDir, set...).Evaluate(t.Context(), j.Data.Eval)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e, other := evaluate(), evaluate("engine.precision=float32")
	if s.Precision != "bf16" || in.Precision != "bf16" || e.Precision != "bf16" || other.Precision != "float32" {
		t.Errorf("precisions %s, %s, %s, %s", s.Precision, in.Precision, e.Precision, other.Precision)
	}
	if e.Metrics.LogLoss != s.Eval.LogLoss || e.Metrics.AUC != s.Eval.AUC {
		t.Errorf("log loss %v and AUC %v, in training %v and %v", e.Metrics.LogLoss, e.Metrics.AUC, s.Eval.LogLoss, s.Eval.AUC)
	}
	if d := math.Abs(float64(other.Metrics.LogLoss - e.Metrics.LogLoss)); d == 0 || d > 1e-3 {
		t.Errorf("in float32 the log loss is %v, in bfloat16 %v", other.Metrics.LogLoss, e.Metrics.LogLoss)
	}
}

// TestWarmStartChangesPrecision checks that a warm start takes parameters over unchanged if the
// precision changes, since they are float32 in any precision.
func TestWarmStartChangesPrecision(t *testing.T) {
	for _, p := range [][2]string{{"float32", "bf16"}, {"bf16", "float32"}, {"bf16", "bf16"}} {
		dir, _ := firstNight(t, "deepfm", "engine.precision="+p[0])
		// A learning rate that changes nothing.
		j := job(t, "deepfm", "engine.precision="+p[1], "optimizer.schedule={warmup_steps: 1000000000000}", "data.limit=64")
		j.Training.WarmStart = dir
		var log strings.Builder
		if _, err := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Version: "test"}); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(log.String(), "another precision"); said != (p[0] != p[1]) {
			t.Errorf("from %s to %s: the log says so: %v", p[0], p[1], said)
		}
		was, is := load(t, dir), load(t, j.Output.ModelDir)
		for i, p := range was.Network.Params() {
			for k, v := range p.Data {
				if now := is.Network.Params()[i].Data[k]; math.Abs(float64(now-v)) > 1e-9 {
					t.Fatalf("value %d of %s was %v and is %v", k, p.Name, v, now)
				}
			}
		}
	}
}

// TestJobsKnowEveryPrecision checks that the job file has the same names of precisions as the
// engine.
func TestJobsKnowEveryPrecision(t *testing.T) {
	i := slices.IndexFunc(configs.Keys(), func(k *configs.Key) bool { return k.Path == "engine.precision" })
	k := configs.Keys()[i]
	var names []string
	for p := engine.Float32; p <= engine.TF32; p++ {
		names = append(names, p.String())
	}
	if !slices.Equal(slices.Sorted(slices.Values(k.Values)), slices.Sorted(slices.Values(names))) || k.Default != engine.Float32.String() {
		t.Errorf("values %v, default %s, want %v", k.Values, k.Default, names)
	}
}
