package trainer

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"aibox/configs"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// narrow are the value formats that round.
var narrow = []string{"float16", "bfloat16"}

// oddRows returns settings with which the rows of a kind of model have an odd number of values.
func oddRows(kind string) []string {
	switch kind {
	case "lr":
		return nil
	case "fm", "wide_deep", "deepfm": // one more, of the linear part
		return []string{"model.embedding_dim=6"}
	case "dlrm":
		return []string{"model.embedding_dim=5", "model.bottom_layers=[8, 5]"}
	}
	return []string{"model.embedding_dim=5"}
}

// TestSameModelInEveryFormat is TestSameModelHoweverItIsRun for 16-bit values, with all rows in
// memory. Evaluation and inspection must read from the directory what was trained.
func TestSameModelInEveryFormat(t *testing.T) {
	for _, kind := range testjobs.Kinds() {
		digests := map[string]string{}
		for _, format := range narrow {
			t.Run(kind+" "+format, func(t *testing.T) {
				base := slices.Concat(extras[kind], oddRows(kind), []string{"sparse_table.value_format=" + format})
				j := job(t, kind, base...)
				s := train(t, j)
				if other := digests[s.Digest]; other != "" {
					t.Errorf("the same model as with %s", other)
				}
				digests[s.Digest] = format
				in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, inference.Options{})
				if err != nil || in.Digest != s.Digest || in.Layout.Format.String() != format || in.Layout.ValueDim%2 != 1 {
					t.Fatalf("inspection: %+v, %v, want digest %s", in, err, s.Digest)
				}
				e, err := load(t, j.Output.ModelDir).Evaluate(t.Context(), j.Data.Eval)
				if err != nil || s.Table.Expired == 0 && !reflect.DeepEqual(e.Metrics, *s.Eval) {
					t.Errorf("eval finds %+v (%v), training found %+v", e, err, *s.Eval)
				}
				for i, v := range variants {
					if v.evicts || testing.Short() && i%3 != 0 {
						continue // TestSmallestCache finds budgets for these rows
					}
					t.Run(v.name, func(t *testing.T) { v.check(t, kind, base, s.Digest) })
				}
			})
		}
	}
}

// TestSmallestCache trains on SSD with the smallest budget that works, in every format. No row may
// depend on how often it left memory.
func TestSmallestCache(t *testing.T) {
	for _, kind := range testjobs.Kinds() {
		for _, format := range sparsetable.ValueFormats() {
			t.Run(kind+" "+format, func(t *testing.T) {
				t.Parallel()
				base := slices.Concat(extras[kind], oddRows(kind), []string{"training.epochs=2", "sparse_table.value_format=" + format})
				want := train(t, job(t, kind, base...)).Digest
				for _, policy := range sparsetable.CachePolicies() {
					set := slices.Concat(base, []string{
						"sparse_table.kind=ssd", "sparse_table.cache_policy=" + policy,
						"pipeline.batches_per_pass=1", "pipeline.pull_queue=1", "pipeline.read_queue=1",
					})
					got := smallestBudget(t, func(bytes string) *configs.Job {
						return job(t, kind, append(slices.Clip(set), "sparse_table.memory_bytes="+bytes)...)
					})
					if got.Digest != want {
						t.Errorf("%s: digest %s, want %s", policy, got.Digest, want)
					}
					if got.Table.Evictions == 0 {
						t.Errorf("%s: no row left memory: %+v", policy, got.Table)
					}
				}
			})
		}
	}
}

var namedBudget = regexp.MustCompile(`budget of (\d+) bytes`)

// smallestBudget runs the job with larger and larger budgets, each named by the error before, until
// one works.
func smallestBudget(t *testing.T, with func(bytes string) *configs.Job) *report.Summary {
	t.Helper()
	budget := "1"
	for range 100 {
		j := with(budget)
		s, err := Train(t.Context(), j, quiet)
		if err == nil {
			s.Digest = testjobs.Digest(t, j)
			return s
		}
		named := namedBudget.FindStringSubmatch(err.Error())
		if !errors.Is(err, sparsetable.ErrBudget) || named == nil {
			t.Fatalf("with %s bytes: %v", budget, err)
		}
		budget = named[1]
	}
	t.Fatalf("no budget works, not even %s bytes", budget)
	return nil
}

// TestWarmStartConvertsValues checks that values that become float32 stay the same numbers, that
// those that become 16 bits are rounded to a neighbor, and that the optimizer's state is kept.
func TestWarmStartConvertsValues(t *testing.T) {
	for _, from := range sparsetable.ValueFormats() {
		for _, to := range sparsetable.ValueFormats() {
			t.Run(from+" to "+to, func(t *testing.T) {
				set := []string{"model.embedding_dim=6", "optimizer.rows.kind=adam", "optimizer.rows.learning_rate=0.01"}
				dir, _ := firstNight(t, "deepfm", append(set, "sparse_table.value_format="+from)...)
				old := load(t, dir)
				j := job(t, "deepfm", append(set, "sparse_table.value_format="+to, "optimizer.schedule={warmup_steps: 1000000}", "data.limit=64")...)
				j.Training.WarmStart = dir
				train(t, j)
				now := load(t, j.Output.ModelDir)
				was, is := old.Table.Layout(), now.Table.Layout()
				if is.Format.String() != to || was.Format.String() != from {
					t.Fatalf("layouts %v, %v", was, is)
				}
				a, b := make([]float32, was.ValueDim), make([]float32, is.ValueDim)
				rows := tableRows(t, now.Table)
				same, differ := 0, 0
				err := old.Table.Scan(t.Context(), func(key uint64, row []float32) error {
					if is.Stats(rows[key]).Count != was.Stats(row).Count {
						return nil // in the one mini-batch
					}
					was.LoadValues(a, row)
					is.LoadValues(b, rows[key])
					for i := range a {
						bound := math.Abs(float64(a[i])) * map[string]float64{"float32": 0, "float16": 1.0 / 1024, "bfloat16": 1.0 / 128}[to]
						if to == "float16" {
							bound = max(bound, math.Ldexp(1, -24))
						}
						if from == to {
							bound = 0
						}
						if d := math.Abs(float64(b[i]) - float64(a[i])); d > bound {
							return fmt.Errorf("value %d of key %x was %v, is %v", i, key, a[i], b[i])
						}
						if a[i] == b[i] {
							same++
						} else {
							differ++
						}
					}
					if !sameWords(is.State(rows[key]), was.State(row)) {
						return fmt.Errorf("state of key %x was %v, is %v", key, was.State(row), is.State(rows[key]))
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				exact := from == to || to == "float32"
				if exact != (differ == 0) || !exact && from == "float32" && same > differ {
					t.Errorf("%d values are the same, %d differ", same, differ)
				}
			})
		}
	}
}
