package cuda_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/optim"
)

// feeding trains and infers the mini-batches of a pass in random order, and returns what they give.
func feeding(t *testing.T, s setup, devices int, ahead bool) (losses []float64, logits []float32, values map[string][]float32, prepared int) {
	t.Helper()
	b := newBench(t, s)
	for i := range b.pass.Batches {
		b.pass.Batches[i].SetMade()
	}
	b = onPlatform(t, b, fusing(devices, s.seed, s.seed))
	e, rng := b.engine.(*cuda.Engine), rand.New(rand.NewPCG(s.seed, 7))
	batches := b.pass.Batches
	for range 3 {
		first := rng.IntN(2) * rng.IntN(len(batches)) // passes seldom begin in the middle, and are seldom left early
		for i := first; i < len(batches); i++ {
			if rng.IntN(8) == 0 {
				i = rng.IntN(len(batches))
			}
			one := engine.Batch{Batch: &batches[i]}
			if !ahead { // the engine does not find it among those of the pass
				other := batches[i]
				one.Batch = &other
			}
			done := func(r *engine.Result) error {
				losses, logits = append(losses, r.Loss), append(logits, r.Logits...)
				return nil
			}
			call := e.Train
			if rng.IntN(6) == 0 {
				call = e.Infer
			}
			if err := call(one, done); err != nil {
				t.Fatal(err)
			}
			var next *reader.Batch
			if ahead && i+1 < len(batches) {
				next = &batches[i+1]
			}
			if got := e.Prepared(); got != next {
				t.Fatalf("behind mini-batch %d of %d another one than the next was prepared, or none", i, len(batches))
			}
			if next != nil {
				prepared++
			}
		}
		b.end(t)
		b.begin(t)
	}
	return losses, logits, b.values(), prepared
}

// TestPrepared: mini-batches that were copied into pinned memory while the one before was trained
// give the same bits as those that were not, whatever is called instead of what was expected.
func TestPrepared(t *testing.T) {
	seed := testseed.Of(t)
	for i, s := range []setup{
		{spec: deep(true), dense: adam},
		{spec: deep(false), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, precision: engine.BF16, decay: 0.01},
	} {
		for _, devices := range []int{1, 3} {
			s.seed, s.held, s.batches, s.examples = seed+uint64(i), true, 7, 40
			losses, logits, values, none := feeding(t, s, devices, false)
			again, logitsAgain, valuesAgain, some := feeding(t, s, devices, true)
			if none > 0 || some < 8 {
				t.Errorf("%d and %d mini-batches were prepared", none, some)
			}
			if !slices.Equal(losses, again) || !slices.Equal(logits, logitsAgain) {
				t.Error("losses or logits differ")
			}
			sameBits(t, valuesAgain, values)
		}
	}
}
