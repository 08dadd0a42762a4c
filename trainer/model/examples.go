package model

// Examples returns one or more specs of every kind, by name, for tests of models and engines. They
// are small enough for finite differences, and together have every layer type and option.
func Examples() map[string]Spec {
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
		"dcn one column":      with(KindDCN, cross, noDense, func(s *Spec) { s.Fields, s.EmbeddingDim = fields[:1], 1 }),
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
