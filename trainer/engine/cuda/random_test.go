package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/gpu/emulated"
	"aibox/gpu/kernels/shim"
	"aibox/internal/testseed"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

func draw[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// randomSpec draws a model of any kind, whose layers have all kinds of widths.
func randomSpec(rng *rand.Rand) model.Spec {
	layers := func(n int) (widths []int) {
		for range n {
			widths = append(widths, draw(rng, 1, 2, 5, 7, 8, 12, 16, 17, 33))
		}
		return widths
	}
	s := model.Spec{
		Kind: draw(rng, model.Kinds()...), EmbeddingDim: draw(rng, 1, 2, 3, 5, 8, 16, 17), HiddenLayers: layers(1 + rng.IntN(3)), CrossLayers: 1 + rng.IntN(3),
		Structure: draw(rng, model.Parallel, model.Stacked), Activation: draw(rng, "relu", "relu", "leaky_relu", "tanh", "sigmoid", "identity"),
		Dropout: draw(rng, 0, 0, 0.3), BatchNorm: rng.IntN(4) == 0, Pooling: draw(rng, "sum", "mean"), Seed: rng.Uint64(),
	}
	for i := range draw(rng, 0, 1, 3, 9) {
		s.Dense = append(s.Dense, fmt.Sprint("dense ", i))
	}
	fields := 1 + rng.IntN(5)
	if s.Kind == model.KindFM || s.Kind == model.KindDLRM && len(s.Dense) == 0 { // which are made of pairs
		fields++
	}
	for i := range fields {
		s.Fields, s.Poolings = append(s.Fields, fmt.Sprint("field ", i)), append(s.Poolings, draw(rng, "", "sum", "mean"))
	}
	s.BottomLayers = append(layers(rng.IntN(3)), s.EmbeddingDim)
	switch s.Kind {
	case model.KindDCNv2:
		s.CrossRank = draw(rng, 0, 1, 3)
	case model.KindFM, model.KindDeepFM:
		s.DenseVectors = rng.IntN(2) == 0
	case model.KindAIBox:
		for i := range rng.IntN(4) {
			t := model.Tower{Name: fmt.Sprint("tower", i), Layers: layers(rng.IntN(3))}
			for column := range s.Dense {
				if rng.IntN(2) == 0 {
					t.Dense = append(t.Dense, column)
				}
			}
			s.Towers = append(s.Towers, t)
		}
	}
	return s
}

// randomSetup draws a model, optimizers, and the formats of numbers.
func randomSetup(rng *rand.Rand) setup {
	s := setup{spec: randomSpec(rng), dense: adam, seed: rng.Uint64(), admitted: rng.IntN(2) == 0, examples: draw(rng, 1, 2, 7, 16, 33)}
	s.dense.Kind, s.dense.Averaging = draw(rng, "sgd", "momentum", "adagrad", "adam", "adamw"), draw(rng, 0, 0.9)
	s.rows = &optim.RowConfig{
		Kind: draw(rng, "sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"), LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, FTRLBeta: 1,
	}
	if s.rows.Kind != "ftrl" {
		s.decay = draw(rng, 0, 0.5)
	}
	s.precision = draw(rng, engine.Float32, engine.BF16, engine.TF32)
	s.format = draw(rng, sparsetable.Float32, sparsetable.Float16, sparsetable.BFloat16)
	return s
}

// randomBags gives a mini-batch other bags, of the same rows: of up to most features, some with weights.
func randomBags(rng *rand.Rand, b *reader.Batch, most int) {
	bags := len(b.Offsets) - 1
	*b = reader.Batch{N: b.N, Labels: b.Labels, Dense: b.Dense, Rows: b.Rows, Offsets: []int32{0}}
	weighted := rng.IntN(2) == 0
	for range bags {
		for range rng.IntN(most + 1) {
			b.Index = append(b.Index, int32(rng.IntN(len(b.Rows))))
			if weighted {
				b.BagWeights = append(b.BagWeights, draw(rng, 0, 1, rng.Float32(), -0.2*rng.Float32()))
			}
		}
		b.Offsets = append(b.Offsets, int32(len(b.Index)))
	}
	if rng.IntN(2) == 0 {
		for range b.N {
			b.Weights = append(b.Weights, draw(rng, 0, 1, rng.Float32()))
		}
	}
	b.Invert(len(b.Rows))
	if rng.IntN(2) == 0 {
		b.SetMade()
	}
}

// TestRandomJobs checks that whatever the model, its optimizers and its mini-batches are, devices
// use nothing that was not written, or that is written concurrently, and that rows on the devices
// get the same bits as rows on the host.
func TestRandomJobs(t *testing.T) { randomJobs(t, 24, nil) }

// TestRandomJobsOfSources checks the same with the CUDA sources of the kernels, whose accesses to
// memory are checked.
func TestRandomJobsOfSources(t *testing.T) { randomJobs(t, 12, shim.Images(t)) }

// randomJobs trains on devices whose rows are on the host, with the kernels' twins, and on those
// that have the rows, with images.
func randomJobs(t *testing.T, jobs int, images map[string]emulated.Kernels) {
	rng := testseed.Rand(t)
	if testing.Short() {
		jobs /= 3
	}
	for i := range jobs {
		s := randomSetup(rng)
		n := randomNight(rng, s, 3, draw(rng, 20, 300))
		for _, p := range n.passes {
			for k := range p.Batches {
				if rng.IntN(3) > 0 {
					randomBags(rng, &p.Batches[k], draw(rng, 1, 3, 40))
				}
			}
		}
		numbers := [][]int{{0}, {0, 1}, {1, 0, 1}, devices(5)}[i%4]
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			logSetup(t, &s, numbers)
			want, _, _, err := nightOn(t, s, n, numbers, 1<<30, s.seed)
			if err != nil {
				t.Fatal(err)
			}
			s.held, s.images = true, images
			got, _, _, err := nightOn(t, s, n, numbers, 1<<30, s.seed+1)
			if err != nil {
				t.Fatal(err)
			}
			sameNight(t, got, want)
		})
	}
}
