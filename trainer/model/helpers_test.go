package model

import (
	"math/rand"
	"testing"
)

// zoo returns one spec or more of every kind, small enough for finite
// differences; every layer type and option occurs in some of them.
func zoo() map[string]Spec {
	fields := []string{"a", "b", "c"}
	dense := []string{"x", "y", "z", "w"}
	base := Spec{Fields: fields, Dense: dense, EmbeddingDim: 3, HiddenLayers: []int{5, 4}, Activation: "tanh", Seed: 7}
	with := func(kind string, change ...func(*Spec)) Spec {
		s := base
		s.Kind = kind
		for _, c := range change {
			c(&s)
		}
		return s
	}
	cross := func(s *Spec) { s.CrossLayers = 2 }
	noDense := func(s *Spec) { s.Dense = nil; s.BottomLayers = nil }
	bottom := func(s *Spec) { s.BottomLayers = []int{4, 3} }
	towers := func(s *Spec) {
		s.Towers = []Tower{
			{Name: "one", Dense: []int{0, 2, 3}, Layers: []int{5, 4}},
			{Name: "two", Dense: []int{1}, Layers: []int{4}},
			{Name: "three"},
		}
	}
	return map[string]Spec{
		"lr":                  with(KindLR),
		"lr mean no dense":    with(KindLR, noDense, func(s *Spec) { s.Pooling = "mean" }),
		"fm":                  with(KindFM),
		"fm dense vectors":    with(KindFM, func(s *Spec) { s.DenseVectors = true }),
		"fm no dense":         with(KindFM, noDense),
		"wide_deep":           with(KindWideDeep),
		"wide_deep relu":      with(KindWideDeep, func(s *Spec) { s.Activation = "relu" }),
		"wide_deep norm":      with(KindWideDeep, func(s *Spec) { s.BatchNorm = true }),
		"wide_deep dropout":   with(KindWideDeep, func(s *Spec) { s.Dropout = 0.3; s.Activation = "sigmoid" }),
		"wide_deep no dense":  with(KindWideDeep, noDense),
		"deepfm":              with(KindDeepFM),
		"deepfm leaky mean":   with(KindDeepFM, func(s *Spec) { s.Activation = "leaky_relu"; s.Pooling = "mean" }),
		"deepfm vectors":      with(KindDeepFM, func(s *Spec) { s.DenseVectors = true }),
		"deepfm mixed":        with(KindDeepFM, func(s *Spec) { s.Pooling, s.Poolings = "mean", []string{"sum", "", "mean"} }),
		"dcn":                 with(KindDCN, cross),
		"dcn stacked":         with(KindDCN, cross, func(s *Spec) { s.Structure = Stacked }),
		"dcn alone":           with(KindDCN, cross, func(s *Spec) { s.HiddenLayers = nil }),
		"dcn_v2":              with(KindDCNv2, cross),
		"dcn_v2 rank stacked": with(KindDCNv2, cross, func(s *Spec) { s.CrossRank = 2; s.Structure = Stacked }),
		"dcn_v2 no dense":     with(KindDCNv2, cross, noDense),
		"dlrm":                with(KindDLRM, bottom),
		"dlrm norm dropout":   with(KindDLRM, bottom, func(s *Spec) { s.BatchNorm = true; s.Dropout = 0.2 }),
		"dlrm no dense":       with(KindDLRM, noDense),
		"aibox":               with(KindAIBox, towers),
		"aibox one tower":     with(KindAIBox),
		"aibox embeddings":    with(KindAIBox, towers, func(s *Spec) { s.EmbeddingActivation = "identity" }),
		"aibox norm dropout":  with(KindAIBox, towers, func(s *Spec) { s.BatchNorm = true; s.Dropout = 0.2 }),
	}
}

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
