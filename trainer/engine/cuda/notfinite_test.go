package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/program"
)

// TestNotFinite: a mini-batch whose loss or batch statistics are not finite changes neither
// parameters nor values of rows, on no device, whichever has the example; the error is that of the
// host's engine. Later mini-batches are not trained, until the state is imported again.
func TestNotFinite(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		norm    bool
		example int
		value   float32
	}{
		{false, 0, float32(math.Inf(1))}, {false, 29, float32(math.NaN())}, {true, 29, float32(math.Inf(1))},
		{true, 15, 1e30}, // the normalization swallows it, the variance is infinite
	} {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprint(c, " devices=", n), func(t *testing.T) {
				spoiled := setup{spec: deep(c.norm), dense: adam, admitted: true, seed: seed, batches: 3, examples: 30}
				spoiled.dense.Averaging = 0.5
				host, b, good := onHost(t, spoiled), onDevices(t, spoiled, n, seed+uint64(n)), onDevices(t, spoiled, n, seed)
				var errs []string
				for _, x := range []*bench{host, b} {
					x.train(t, 0, 1)
					if err := x.engine.Export(); err != nil {
						t.Fatal(err)
					}
					before := x.values()
					bad := x.pass.Batches[1]
					bad.Dense = slices.Clone(bad.Dense)
					bad.Dense[c.example*2] = c.value
					delivered := func(*engine.Result) error {
						t.Error("a result is delivered")
						return nil
					}
					err := x.engine.Train(engine.Batch{Batch: &bad}, delivered)
					if !errors.Is(err, program.ErrNotFinite) || x.state.Step != 1 {
						t.Fatalf("step %d: %v", x.state.Step, err)
					}
					errs = append(errs, err.Error())
					if x == b {
						if later := x.engine.Train(engine.Batch{Batch: &x.pass.Batches[2]}, delivered); !errors.Is(later, program.ErrNotFinite) {
							t.Errorf("the next mini-batch: %v", later)
						}
					}
					x.end(t)
					if err := x.engine.Check(); err != nil {
						t.Errorf("Check: %v", err)
					}
					sameBits(t, x.values(), before)
				}
				if errs[0] != errs[1] {
					t.Errorf("the error is %q, that of the host's engine %q", errs[1], errs[0])
				}
				if !slices.Equal(b.stats(), host.stats()) {
					t.Error("the statistics of rows depend on values")
				}
				if err := b.engine.Import(); err != nil {
					t.Fatal(err)
				}
				b.begin(t)
				good.train(t, 0, 1)
				for _, x := range []*bench{b, good} {
					if err := x.engine.Train(engine.Batch{Batch: &x.pass.Batches[2]}, func(*engine.Result) error { return nil }); err != nil {
						t.Fatal(err)
					}
					x.end(t)
				}
				sameBits(t, b.values(), good.values())
			})
		}
	}
}

// TestInferNotFinite: a logit that is not finite is the error of its mini-batch, and no later
// result is delivered.
func TestInferNotFinite(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(false), dense: adam, seed: seed, batches: 3, examples: 30}
	host, b := onHost(t, s), onDevices(t, s, 2, seed)
	var errs []string
	for _, x := range []*bench{host, b} {
		x.pass.Batches[1].Dense[2*17] = float32(math.Inf(-1))
		delivered := 0
		var err error
		for i := 0; i < 3 && err == nil; i++ {
			err = x.engine.Infer(engine.Batch{Batch: &x.pass.Batches[i]}, func(*engine.Result) error {
				delivered++
				return nil
			})
		}
		if end := x.engine.End(); err == nil {
			err = end
		}
		if !errors.Is(err, program.ErrNotFinite) || delivered != 1 {
			t.Fatalf("%d results, error %v", delivered, err)
		}
		errs = append(errs, err.Error())
	}
	if errs[0] != errs[1] {
		t.Errorf("the error is %q, that of the host's engine %q", errs[1], errs[0])
	}
}

// TestCheck: a parameter is found, and named, that the last update has made infinite, or whose
// optimizer's state it has made infinite.
func TestCheck(t *testing.T) {
	seed := testseed.Of(t)
	s := setup{spec: deep(true), dense: adam, seed: seed, batches: 1, examples: 30}
	for n := 1; n <= 2; n++ {
		b := onDevices(t, s, n, seed)
		b.train(t, 0, 1)
		b.end(t)
		if err := b.engine.Check(); err != nil {
			t.Error(err)
		}
		fails := func(broken []float32, want error) {
			broken[len(broken)-1] = float32(math.Inf(1))
			if err := b.engine.Import(); err != nil {
				t.Fatal(err)
			}
			if err := b.engine.Check(); !errors.Is(err, program.ErrNotFinite) || err.Error() != want.Error() {
				t.Errorf("%v, want %v", err, want)
			}
		}
		p := b.model.Params()
		fails(b.state.Dense.Slots(3)[1], engine.OptimizerError("parameter "+p[3].Name, 1))
		fails(p[2].Data, engine.UpdateError("parameter "+p[2].Name, 1))
	}
}

// TestNaNParameter: the step after one in which a parameter is NaN fails, also where the devices
// make 0 of all that the layer computes.
func TestNaNParameter(t *testing.T) {
	for _, zeroes := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			o := optionsOf(n, 1<<30, 64<<10, 1)
			o.ZeroesNaN = zeroes
			spec := model.Spec{Kind: model.KindDLRM, Fields: []string{"a", "b"}, Dense: []string{"x", "y"}, EmbeddingDim: 4, BottomLayers: []int{12, 4}, HiddenLayers: []int{12}}
			b := newBench(t, setup{spec: spec, dense: adam, admitted: true, batches: 3, examples: 30})
			for _, p := range b.model.Params() {
				if p.Name == "bottom/0/weight" {
					p.Data[0] = float32(math.NaN())
				}
			}
			b = onPlatform(t, b, emulated.New(o))
			results := 0
			var err error
			for i := 0; i < 3 && err == nil; i++ {
				err = b.engine.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { results++; return nil })
			}
			if want := map[bool]int{false: 0, true: 1}[zeroes]; !errors.Is(err, program.ErrNotFinite) || results != want {
				t.Errorf("%d devices, 0 in the place of NaN: %v: %d results, want %d: %v", n, zeroes, results, want, err)
			}
		}
	}
}
