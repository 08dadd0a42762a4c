package model

import (
	"math/rand"
	"testing"
)

func mustNew(t testing.TB, spec Spec) *Model {
	t.Helper()
	m, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// randomInputs draws a mini-batch: bags of 0 to 3 features with repetitions,
// some of them weighted.
func randomInputs(rng *rand.Rand, spec Spec, n, rows int) *Inputs {
	in := &Inputs{N: n, Offsets: []int32{0}, Step: rng.Int63n(1000)}
	for range rows * spec.RowDim() {
		in.Rows = append(in.Rows, float32(rng.NormFloat64())*0.5)
	}
	for range n * len(spec.Fields) {
		for range rng.Intn(4) {
			in.Index = append(in.Index, int32(rng.Intn(rows)))
		}
		in.Offsets = append(in.Offsets, int32(len(in.Index)))
	}
	if rng.Intn(2) == 0 {
		for range in.Index {
			in.BagWeights = append(in.BagWeights, 0.25+rng.Float32())
		}
	}
	for range n * len(spec.Dense) {
		in.Dense = append(in.Dense, float32(rng.NormFloat64()))
	}
	for range n {
		in.Labels = append(in.Labels, float32(rng.Intn(2)))
	}
	if rng.Intn(2) == 0 {
		for range n {
			in.Weights = append(in.Weights, 0.5+rng.Float32())
		}
	}
	return in
}

// perturb gives parameters values of some size, so that gradients have one.
func perturb(rng *rand.Rand, m *Model) {
	for _, p := range m.Params() {
		for i := range p.Data {
			p.Data[i] += float32(rng.NormFloat64()) * 0.3
		}
	}
}

func newRand(t testing.TB, seed int64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewSource(seed))
}
