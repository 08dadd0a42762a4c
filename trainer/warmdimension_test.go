package trainer

import (
	"fmt"
	"math"
	"testing"

	"aibox/trainer/inference"
)

// TestWarmStartWithAnotherDimension: where embeddings become longer or shorter, rows and
// layers keep what both models have, by position in the embedding; the rest is new.
func TestWarmStartWithAnotherDimension(t *testing.T) {
	for _, kind := range []string{"aibox", "dlrm", "wide_deep", "deepfm", "dcn", "dcn_v2", "fm"} {
		for _, dim := range []int{2, 6} {
			t.Run(fmt.Sprintf("%s/%d", kind, dim), func(t *testing.T) {
				of := func(dim int) []string {
					set := []string{fmt.Sprintf("model.embedding_dim=%d", dim)}
					switch kind {
					case "aibox", "fm":
					case "dlrm":
						set = append(set, fmt.Sprintf("model.bottom_layers=[8, %d]", dim))
					default:
						set = append(set, "model.hidden_layers=[8]")
					}
					return set
				}
				dir, _ := firstNight(t, kind, of(4)...)
				j := job(t, kind, append(of(dim), "optimizer.schedule={warmup_steps: 1000000}", "data.limit=64")...)
				j.Training.WarmStart = dir
				train(t, j)
				old, now := load(t, dir), load(t, j.Output.ModelDir)
				before, after := valuesOf(t, old), valuesOf(t, now)
				kept, fresh := 0, 0
				for name, v := range after {
					was, ok := before[name]
					if !ok {
						fresh++
						continue
					}
					kept++
					// A step at a millionth of the learning rate moves by less.
					if math.Abs(float64(v-was)) > 1e-4 {
						t.Fatalf("%s is %g, was %g", name, v, was)
					}
				}
				if kept < 100 || (fresh > 100) != (dim > 4) {
					t.Errorf("%d values were kept, %d are new", kept, fresh)
				}
			})
		}
	}
}

// valuesOf are the values of a model's rows and parameters, by names that say what they
// belong to.
func valuesOf(t *testing.T, l *inference.Model) map[string]float32 {
	t.Helper()
	all := map[string]float32{}
	spec := l.Network.Spec()
	names, layout := spec.RowNames(), l.Table.Layout()
	for key, row := range tableRows(t, l.Table) {
		for i, v := range layout.Values(row) {
			all[fmt.Sprintf("row %x %s", key, names[i])] = v
		}
	}
	for _, p := range l.Network.Params() {
		axes := l.Network.Axes(p.Name)
		entry := func(axis, i int) string {
			if axis < len(axes) && axes[axis] != nil {
				return axes[axis][i]
			}
			return fmt.Sprint(i)
		}
		for i, v := range p.Data {
			if len(p.Shape) == 2 {
				all[p.Name+" "+entry(0, i/p.Shape[1])+" "+entry(1, i%p.Shape[1])] = v
			} else {
				all[p.Name+" "+entry(0, i)] = v
			}
		}
	}
	return all
}
