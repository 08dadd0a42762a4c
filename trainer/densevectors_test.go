package trainer

import (
	"slices"
	"testing"

	"aibox/trainer/inference"
)

// TestDenseVectorsAtAWarmStart checks that vectors of dense features are matched by the features'
// names, so that those of a feature that both models have are kept, and a new feature gets new
// ones.
func TestDenseVectorsAtAWarmStart(t *testing.T) {
	still := []string{"model.dense_vectors=true", "optimizer.dense.kind=sgd", "optimizer.dense.learning_rate=1e-9"}
	for _, kind := range []string{"fm", "deepfm"} {
		first := job(t, kind, "model.dense_vectors=true", "data.columns[2].role=ignore")
		train(t, first)
		second := job(t, kind, still...)
		second.Training.WarmStart = first.Output.ModelDir
		train(t, second)
		a, b := load(t, first.Output.ModelDir), load(t, second.Output.ModelDir)
		x, y := a.Saved.Tensor("param/dense_vectors"), b.Saved.Tensor("param/dense_vectors")
		names := func(l *inference.Model) []string { return l.Network.Axes("dense_vectors")[0] }
		if len(y.Data) != len(x.Data)+8 { // D2 and its indicator
			t.Fatalf("%s: %d values after %d", kind, len(y.Data), len(x.Data))
		}
		for i, name := range names(a) {
			at := slices.Index(names(b), name)
			if d := x.Data[i] - y.Data[at]; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s: %s went from %v to %v", kind, name, x.Data[i], y.Data[at])
			}
		}
	}
}
