package cuda_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/engine/cuda"
)

// TestInferOnly: an engine without optimizers infers as that of the host does.
func TestInferOnly(t *testing.T) {
	seed := testseed.Of(t)
	for n := 1; n <= 2; n++ {
		trained := onHost(t, setup{spec: deep(true), dense: adam, seed: seed, batches: 6, examples: 25})
		trained.train(t, 0, trained.batches)
		trained.end(t)
		c := engine.Config{Network: trained.config.Network, Layout: trained.layout, MinOccurrences: 2}
		host, err := cpu.New(c, &engine.State{Step: 7})
		if err != nil {
			t.Fatal(err)
		}
		trained.engine = host
		want := trained.infer(t)
		p := platform(n, seed)
		e, err := cuda.New(c, &engine.State{Step: 7}, cuda.Options{Platform: p, Devices: devices(n)})
		if err != nil {
			t.Fatal(err)
		}
		trained.engine = e
		for i, got := range trained.infer(t) {
			near(t, "logits", got, want[i], 1e-4)
		}
		if err := errors.Join(e.Check(), e.Close(), p.Err()); err != nil {
			t.Error(err)
		}
	}
}

// TestFewExamples: devices that get no example of a mini-batch add nothing to its sums.
func TestFewExamples(t *testing.T) {
	seed := testseed.Of(t)
	for examples := 1; examples <= 3; examples++ {
		for _, norm := range []bool{false, true} {
			for precision, tolerance := range map[engine.Precision]float64{engine.Float32: 1e-4, engine.BF16: 3e-3} { // of one number that is rounded to its other neighbour
				s := setup{spec: deep(norm), dense: adam, precision: precision, admitted: true, seed: seed, batches: 1, examples: examples}
				s.dense.Kind, s.dense.LearningRate = "sgd", 0.01
				host := onHost(t, s)
				wantLosses, _ := host.train(t, 0, 1)
				host.end(t)
				for n := 2; n <= 4; n++ {
					t.Run(fmt.Sprintf("examples=%d norm=%v %v devices=%d", examples, norm, precision, n), func(t *testing.T) {
						b := onDevices(t, s, n, seed)
						losses, _ := b.train(t, 0, 1)
						b.end(t)
						near(t, "loss", []float32{float32(losses[0])}, []float32{float32(wantLosses[0])}, tolerance)
						got, want := b.values(), host.values()
						delete(want, "rows") // Adagrad turns a gradient that is 0 but for rounding into a step
						allNear(t, got, want, tolerance)
					})
				}
			}
		}
	}
}

// TestDoneFails: an error of done ends the call, and nothing is delivered after it; after a panic
// the engine is not used any more.
func TestDoneFails(t *testing.T) {
	seed := testseed.Of(t)
	failed := errors.New("enough")
	s := setup{spec: deep(false), dense: adam, seed: seed, batches: 3, examples: 20}
	b := onDevices(t, s, 2, seed)
	infer := func(i int, done engine.Done) error {
		return b.engine.Infer(engine.Batch{Batch: &b.pass.Batches[i]}, done)
	}
	never := func(*engine.Result) error { t.Error("a result after an error"); return nil }
	if err := infer(0, func(*engine.Result) error { return failed }); err != nil {
		t.Fatal(err)
	}
	if err := infer(1, never); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	b.end(t)
	b.begin(t)
	losses, _ := b.train(t, 0, 1)
	other := onDevices(t, s, 2, seed)
	want, _ := other.train(t, 0, 1)
	if !slices.Equal(losses, want) {
		t.Errorf("loss %v after an error of done, want %v", losses, want)
	}
	err := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[1]}, func(*engine.Result) error { panic("cheese") })
	if err == nil || !strings.Contains(err.Error(), "cheese") {
		t.Errorf("panic: %v", err)
	}
	if again := b.engine.Train(engine.Batch{Batch: &b.pass.Batches[1]}, never); !errors.Is(again, err) {
		t.Errorf("after a panic: %v", again)
	}
}
