package cuda_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// onHeldRows returns a bench with an engine on devices that has rows there.
func onHeldRows(t testing.TB, s setup, numbers []int, seed uint64) *bench {
	t.Helper()
	return withDevices(t, s, cuda.Options{Platform: platform(slices.Max(numbers)+1, seed), Devices: numbers, RowsOnDevice: true})
}

func withDevices(t testing.TB, s setup, o cuda.Options) *bench {
	t.Helper()
	b := newBench(t, s)
	e, err := cuda.New(b.config, &b.state, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), o.Platform.(*emulated.Platform).Err()); err != nil {
			t.Error(err)
		}
	})
	b.engine = e
	b.begin(t)
	return b
}

// all are losses, logits, parameters, rows and statistics of a run in two passes, and what is inferred then.
func (b *bench) all(t testing.TB) string {
	t.Helper()
	half := b.batches / 2
	var results []string
	for _, r := range [][2]int{{0, half}, {half, b.batches}} {
		for i := r[0]; i < r[1]; i++ {
			if err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
				results = append(results, fmt.Sprint(r.Step, r.Loss, r.Logits))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		b.end(t)
		if len(results) != r[1] {
			t.Fatalf("%d results after %d steps", len(results), r[1])
		}
		if r[1] < b.batches {
			b.begin(t)
		}
	}
	return fmt.Sprint(results, b.values(), b.words(), b.infer(t))
}

// words are those of all rows.
func (b *bench) words() (all [][]float32) {
	for i := range b.pass.Keys {
		all = append(all, slices.Clone(b.rows.Row(i)))
	}
	return all
}

// TestHeldRowGroups: rows of fields whose optimizer state began at different steps are updated as
// the host updates them.
func TestHeldRowGroups(t *testing.T) {
	seed := testseed.Of(t)
	for _, numbers := range [][]int{{0}, {0, 0}} {
		s := setup{spec: deep(true), dense: adam, rows: &optim.RowConfig{Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, seed: seed, batches: 2, examples: 200} // every row occurs
		var got []string
		for _, b := range []*bench{onDevices(t, s, len(numbers), seed), onHeldRows(t, s, numbers, seed)} {
			if err := json.Unmarshal([]byte("[-7, 0, -90]"), b.state.RowSteps); err != nil {
				t.Fatal(err)
			}
			got = append(got, b.all(t))
		}
		if got[0] != got[1] {
			t.Errorf("%s\nwant %s", got[1], got[0])
		}
	}
}

// TestHeldRowsMixed: training and inference may take turns; results come in order, all one call late.
func TestHeldRowsMixed(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(true), dense: adam, seed: seed, batches: 12, examples: 20}
	for _, numbers := range [][]int{{0}, {0, 1, 0}} {
		var all [2][]string
		for x, b := range []*bench{onDevices(t, s, len(numbers), seed), onHeldRows(t, s, numbers, seed)} {
			for i := range s.batches {
				do := b.engine.Infer
				if i%4 < 2 {
					do = b.engine.Train
				}
				if err := do(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
					all[x] = append(all[x], fmt.Sprint(r.Batch.N, r.Step, r.Loss, r.Logits))
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if x == 1 && len(all[x]) != i {
					t.Fatalf("%d results after %d calls", len(all[x]), i+1)
				}
			}
			b.end(t)
		}
		if !slices.Equal(all[0], all[1]) {
			t.Errorf("%v\nwant %v", all[1], all[0])
		}
	}
}

// TestHeldRowsNotFinite checks that the error is the same as with rows on the host, that the rows
// of the pass are unchanged, that the step does not count, and that the engine can be used again
// after an Import.
func TestHeldRowsNotFinite(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		batches, results int
		explodes         bool
	}{{2, 1, false}, {4, 1, false}, {4, 0, true}, {1, 0, true}} {
		for _, numbers := range [][]int{{0}, {0, 1, 1}} {
			t.Run(fmt.Sprint(c, numbers), func(t *testing.T) {
				s := setup{spec: deep(false), dense: adam, admitted: true, seed: seed, batches: 4, examples: 30}
				if c.explodes {
					s.rows = &optim.RowConfig{Kind: "sgd", LearningRate: 3e38, L2: 1e5}
				}
				var errs []string
				for _, b := range []*bench{onDevices(t, s, len(numbers), seed), onHeldRows(t, s, numbers, seed)} {
					good := b.pass.Batches[1].Dense[58]
					if !c.explodes {
						b.pass.Batches[1].Dense[58] = float32(math.Inf(1))
					}
					before := fmt.Sprint(b.words())
					results := 0
					var err error
					for i := 0; i < c.batches && err == nil; i++ {
						err = b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { results++; return nil })
					}
					if end := b.engine.End(); err == nil {
						err = end
					}
					if !errors.Is(err, program.ErrNotFinite) || results != c.results {
						t.Fatalf("%d results, error %v", results, err)
					}
					errs = append(errs, err.Error())
					if c.explodes {
						batch := &b.pass.Batches[0]
						first := fmt.Sprintf("the row of key %x after the update of step 1", b.pass.Keys[batch.Rows[slices.Min(batch.Index)]])
						if !strings.Contains(err.Error(), first) {
							t.Errorf("the error does not say %q: %v", first, err)
						}
						trainWithoutRows(t, b)
						continue
					}
					if b.state.Step != 1 {
						t.Errorf("step %d", b.state.Step)
					}
					if len(errs) == 2 && fmt.Sprint(b.words()) != before {
						t.Error("rows have changed")
					}
					b.pass.Batches[1].Dense[58] = good
					if err := b.engine.Import(); err != nil {
						t.Fatal(err)
					}
					b.begin(t)
					b.train(t, 1, 2)
					b.end(t)
				}
				if errs[0] != errs[1] {
					t.Errorf("the error is %q, that of the host's rows %q", errs[1], errs[0])
				}
			})
		}
	}
}

// trainWithoutRows trains mini-batches without any feature after an error, in each slot: that rows
// were not finite is over.
func trainWithoutRows(t *testing.T, b *bench) {
	if err := b.engine.Import(); err != nil {
		t.Fatal(err)
	}
	for i := range b.pass.Batches[:3] {
		x := &b.pass.Batches[i]
		clear(x.Offsets)
		x.Index, x.Rows, x.BagWeights = x.Index[:0], x.Rows[:0], x.BagWeights[:0:0]
		x.Invert(0)
	}
	b.begin(t)
	for i := range b.pass.Batches[:3] {
		if err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	b.end(t)
}

// TestHeldRowsFew checks mini-batches without any feature, and with fewer examples and rows than
// there are devices.
func TestHeldRowsFew(t *testing.T) {
	seed := testseed.Of(t)
	for _, numbers := range [][]int{{0}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		for _, spec := range []model.Spec{deep(true), model.Examples()["deepfm mixed"]} { // the second one has means
			s := setup{spec: spec, dense: adam, decay: 0.2, admitted: true, seed: seed, batches: 6, examples: 9}
			var got []string
			for _, b := range []*bench{onDevices(t, s, len(numbers), seed), onHeldRows(t, s, numbers, seed)} {
				x := &b.pass.Batches[1]
				clear(x.Offsets)
				x.Index, x.Rows = x.Index[:0], x.Rows[:0]
				x.Invert(0)
				got = append(got, b.all(t))
			}
			if got[0] != got[1] {
				t.Errorf("%v: %s\nwant %s", numbers, got[1], got[0])
			}
		}
	}
}

// TestHeldRowsInferOnly checks that an engine without optimizers infers and changes no rows. All
// missing rows share one row in memory.
func TestHeldRowsInferOnly(t *testing.T) {
	seed := testseed.Of(t)
	b := onDevices(t, setup{spec: deep(true), dense: adam, seed: seed, batches: 6, examples: 25}, 1, seed)
	b.train(t, 0, b.batches)
	b.end(t)
	for i := range b.pass.Keys[:9] {
		b.pass.Keys[i] += 1 << 40
	}
	var err error
	if b.rows, err = b.table.Pull(t.Context(), b.pass.Keys, sparsetable.PullLookup); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, there := range []bool{false, true} {
		p := platform(2, seed)
		e, err := cuda.New(engine.Config{Network: b.config.Network, Layout: b.layout, MinOccurrences: 2}, &engine.State{Step: 7}, cuda.Options{Platform: p, Devices: []int{1, 0}, RowsOnDevice: there})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Begin(engine.Pass{Keys: b.pass.Keys, Rows: b.rows}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range b.pass.Batches {
			err = errors.Join(err, e.Infer(engine.Batch{Batch: &b.pass.Batches[i]}, func(r *engine.Result) error {
				got = append(got, fmt.Sprint(r.Step, r.Logits))
				return nil
			}))
		}
		before := fmt.Sprint(b.words())
		if err := errors.Join(err, e.End(), e.Check(), e.Close(), p.Err()); err != nil || fmt.Sprint(b.words()) != before {
			t.Error(err)
		}
		if there && !slices.Equal(got, want) {
			t.Errorf("%v\nwant %v", got, want)
		}
		want = got
	}
}

// TestHeldRowsChunks checks a pass whose rows are copied in several parts.
func TestHeldRowsChunks(t *testing.T) {
	seed := testseed.Of(t)
	for _, numbers := range [][]int{{0}, {0, 1}} {
		s := setup{spec: deep(false), dense: adam, format: sparsetable.BFloat16, seed: seed, batches: 1, examples: 40}
		host, b := newBench(t, s), newBench(t, s)
		rows := 5000*len(numbers) + 1
		last := int32(rows - 1)
		var words [2][][]float32
		for i, x := range []*bench{host, b} {
			for k := len(x.pass.Keys); k < rows; k++ {
				x.pass.Keys = append(x.pass.Keys, uint64(1000+k))
			}
			batch := &x.pass.Batches[0]
			for at := range batch.Rows { // from all over the pass, the last one included
				batch.Rows[at] = last - int32(at)*(last/int32(len(batch.Rows)))
			}
			p := platform(2, seed)
			e, err := cuda.New(x.config, &x.state, cuda.Options{Platform: p, Devices: numbers, RowsOnDevice: i == 1})
			if err != nil {
				t.Fatal(err)
			}
			x.engine = e
			x.begin(t)
			x.train(t, 0, 1)
			x.end(t)
			words[i] = x.words()
			if err := errors.Join(e.Close(), p.Err()); err != nil {
				t.Fatal(err)
			}
		}
		for r := range words[0] {
			if !slices.Equal(words[0][r], words[1][r]) && !slices.ContainsFunc(words[0][r], func(v float32) bool { return v != v }) {
				t.Fatalf("%v: row %d of %d: %v, want %v", numbers, r, rows, words[1][r], words[0][r])
			}
		}
	}
}
