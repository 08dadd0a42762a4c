package trainer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/internal/testjobs"
)

// nightSettings draws how a model is trained in a night: each may have other optimizers, whose
// state the rows of the night before have, other formats of numbers, a wider embedding, or a field
// more.
func nightSettings(rng *rand.Rand, kind string) []string {
	draw := func(of ...string) string { return of[rng.IntN(len(of))] }
	set := []string{
		"training.max_examples=250", "training.batch_size=" + draw("33", "50"), "pipeline.batches_per_pass=" + draw("1", "3"),
		"optimizer.dense.kind=" + draw("sgd", "momentum", "adagrad", "adam", "adamw"), "optimizer.dense.learning_rate=0.005",
		"optimizer.dense.averaging=" + draw("0", "0.9"), "optimizer.rows.kind=" + draw("sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"),
		"optimizer.rows.learning_rate=0.01", "sparse_table.value_format=" + draw("float32", "float32", "float16", "bfloat16"),
		"sparse_table.show_decay=" + draw("1", "0.9"), "sparse_table.admission.min_occurrences=" + draw("1", "2"),
	}
	if !slices.Contains(set, "optimizer.rows.kind=ftrl") {
		set = append(set, "optimizer.rows.weight_decay="+draw("0", "0.5"))
	}
	if rng.IntN(3) == 0 {
		set = append(set, withoutItem...)
	}
	if kind != "lr" {
		set = append(set, "model.embedding_dim="+draw("4", "6"))
	}
	if kind != "fm" && kind != "lr" {
		set = append(set, "model.activation=tanh", "model.dropout="+draw("0", "0.2"))
	}
	return set
}

// TestDevicesNights checks that consecutive nights make the same models on the host's processors
// and on devices, wherever the embeddings are, and whatever each night changes. The models of
// devices must have the same bits, and those of the host must be the same up to rounding.
func TestDevicesNights(t *testing.T) {
	seed := testseed.Of(t)
	chains := 8
	if testing.Short() {
		chains = 2
	}
	for i := range chains {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		kind := testjobs.Kinds()[rng.IntN(len(testjobs.Kinds()))]
		numbers := []string{"[0]", "[0, 1]", "[1, 0, 1]"}[rng.IntN(3)]
		t.Run(fmt.Sprint(i, kind, numbers), func(t *testing.T) {
			before := map[string]string{} // the model of the night before
			for night := range 3 {
				set := nightSettings(rng, kind)
				places := map[string][]string{"processors": nil, "host": {"engine.embeddings=cpu"}, "either": {"engine.embeddings=" + []string{"cpu", "device"}[rng.IntN(2)]}}
				losses, digests := map[string]float64{}, map[string]string{}
				for _, name := range []string{"processors", "host", "either"} {
					set := append(slices.Clip(set), places[name]...)
					if name != "processors" {
						set = append(set, "engine.kind=cuda", "engine.devices="+numbers)
					}
					j := job(t, kind, set...)
					j.Training.WarmStart = before[name]
					s, err := trainOn(t, j, devices(rng.Uint64(), 2), nil)
					if err != nil {
						t.Fatalf("night %d, %s, %v: %v", night, name, set, err)
					}
					before[name], losses[name], digests[name] = j.Output.ModelDir, float64(s.Eval.LogLoss), s.Digest
				}
				if digests["either"] != digests["host"] {
					t.Fatalf("night %d, %v: the digest is %s with %v, and %s with rows on the host", night, set, digests["either"], places["either"], digests["host"])
				}
				if diff := math.Abs(losses["host"] - losses["processors"]); !(diff < 2e-3) {
					t.Fatalf("night %d, %v: log loss %v on devices, %v on processors", night, set, losses["host"], losses["processors"])
				}
			}
		})
	}
}
