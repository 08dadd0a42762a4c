package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// speedModel is the model of bench/speed.
func speedModel() model.Spec {
	s := model.Spec{
		Kind: model.KindDLRM, Activation: "relu", EmbeddingDim: 16, BottomLayers: []int{512, 256, 64, 16}, HiddenLayers: []int{512, 256}, Seed: 1,
	}
	for i := range 26 {
		s.Fields = append(s.Fields, fmt.Sprintf("C%d", i))
	}
	for i := range 13 {
		s.Dense = append(s.Dense, fmt.Sprintf("I%d", i))
	}
	return s
}

// speedBench is that model with a pass of mini-batches of so many examples, each bag of which has
// one of so many rows.
func speedBench(t testing.TB, batches, examples, rows int) *bench {
	s := setup{
		spec: speedModel(), dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, rows: &optim.RowConfig{Kind: "sgd", LearningRate: 1},
		precision: engine.BF16, admitted: true, held: true, seed: 1, batches: 1, examples: 1,
	}
	b := newBench(t, s)
	b.pass = &reader.Pass{}
	for i := range rows {
		b.pass.Keys = append(b.pass.Keys, uint64(i*7+1))
	}
	rng, found := rand.New(rand.NewPCG(1, 3)), make([]int32, rows)
	for range batches {
		clear(found)
		m := reader.Batch{N: examples, Offsets: []int32{0}}
		for range examples {
			m.Labels = append(m.Labels, float32(rng.IntN(2)))
			for range s.spec.Dense {
				m.Dense = append(m.Dense, rng.Float32())
			}
			for range s.spec.Fields {
				row := rng.IntN(rows)
				if found[row] == 0 {
					m.Rows = append(m.Rows, int32(row))
					found[row] = int32(len(m.Rows))
				}
				m.Index = append(m.Index, found[row]-1)
				m.Offsets = append(m.Offsets, int32(len(m.Index)))
			}
		}
		m.Invert(len(m.Rows))
		m.SetMade()
		b.pass.Batches = append(b.pass.Batches, m)
	}
	return b
}

// TestCallsOfStep: how often a step of training with rows on one device calls the driver. Each call
// takes the host some microseconds; a device may take no more than some 200 for the step of a small
// mini-batch.
func TestCallsOfStep(t *testing.T) {
	b := speedBench(t, 4, 64, 500)
	p := nothing{new(calls)}
	e := b.open(t, p, devices(1))
	b.begin(t)
	train := func() {
		for i := range b.pass.Batches {
			if err := e.Train(engine.Batch{Batch: &b.pass.Batches[i]}, func(*engine.Result) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 {
		train()
	}
	before := *p.calls
	for range 31 { // as many steps are sampled as not
		train()
	}
	got, steps := *p.calls, 31*len(b.pass.Batches)
	for _, c := range []struct {
		what        string
		count, want int
	}{
		{"runs of graphs", got.runs - before.runs, 2 * steps},
		{"launches of kernels", got.launches - before.launches, 8 * steps},
		{"copies", got.copies - before.copies, 4 * steps},
		{"fills", got.fills - before.fills, 0},
		{"records of events", got.records - before.records, 6*steps + 3*len(b.pass.Batches)},
		{"waits of streams", got.waits - before.waits, 8 * steps},
		{"waits of the host", got.synchronizes - before.synchronizes, steps},
	} {
		if c.count != c.want {
			t.Errorf("%d %s in %d steps, want %d", c.count, c.what, steps, c.want)
		}
	}
}

// BenchmarkHost is the host's part of a step of training with rows on the device: the device does
// nothing. With few examples it is what the host does to enqueue a step; with many it waits until a
// worker has copied what the next step needs.
func BenchmarkHost(b *testing.B) {
	for _, examples := range []int{64, 4096} {
		b.Run(fmt.Sprint(examples), func(b *testing.B) {
			bench := speedBench(b, 32, examples, 500_000)
			e := bench.open(b, nothing{new(calls)}, devices(1))
			bench.begin(b)
			i := 0
			train := func() {
				if err := e.Train(engine.Batch{Batch: &bench.pass.Batches[i%32]}, func(*engine.Result) error { return nil }); err != nil {
					b.Fatal(err)
				}
				i++
			}
			for range 64 {
				train()
			}
			for b.Loop() {
				train()
			}
		})
	}
}
