package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// dlrm is a DLRM of the usual size of its network for the Criteo data.
func dlrm() model.Spec {
	s := model.Spec{Kind: "dlrm", EmbeddingDim: 16, BottomLayers: []int{512, 256, 64, 16}, HiddenLayers: []int{512, 256}, Activation: "relu", Seed: 3}
	for i := range 13 {
		s.Dense = append(s.Dense, fmt.Sprint("dense ", i))
	}
	for i := range 26 {
		s.Fields = append(s.Fields, fmt.Sprint("field ", i))
	}
	return s
}

// TestFewUpdates: a step updates all parameters by as many launches as there are configurations of
// optimizers, and all averages by one more.
func TestFewUpdates(t *testing.T) {
	seed := testseed.Of(t)
	params := newBench(t, setup{spec: dlrm(), dense: adam, seed: seed, batches: 1, examples: 2}).model.Params()
	ftrl := optim.RowConfig{Kind: "ftrl", LearningRate: 0.1, FTRLBeta: 1}
	rate := optim.RowConfig{Kind: "adam", LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	own := func(config optim.RowConfig, numbers ...int) (all []optim.Own) {
		for _, i := range numbers {
			all = append(all, optim.Own{Param: params[i].Name, Config: config})
		}
		return all
	}
	averaging := adam
	averaging.Averaging = 0.9
	for _, c := range []struct {
		dense       optim.DenseConfig
		own         []optim.Own
		devices     int
		bucketBytes int
		want        int // of each device
	}{
		{adam, nil, 1, 4 << 20, 1},
		{averaging, nil, 1, 4 << 20, 2},
		{adam, nil, 2, 1, 1}, // although each layer's gradients are added up on their own
		{adam, own(ftrl, 2, 5, 12), 1, 4 << 20, 2},
		{averaging, append(own(ftrl, 2, 5, 12), own(rate, 3, 6, 13)...), 2, 4 << 20, 4},
	} {
		cuda.SetBucketBytes(t, c.bucketBytes)
		b := newBench(t, setup{spec: dlrm(), dense: c.dense, own: c.own, seed: seed, batches: 1, examples: 2})
		p := nothing{new(calls)}
		b.open(t, p, devices(c.devices))
		b.begin(t)
		b.trainFirst(t, 1)
		if got := p.calls.updates; got != c.want*c.devices {
			t.Errorf("%+v: %d launches update %d parameters on %d devices, want %d on each", c, got, len(params), c.devices, c.want)
		}
	}
}
