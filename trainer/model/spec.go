package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aibox/trainer/ops"
)

// Kinds of models.
const (
	KindLR       = "lr"
	KindFM       = "fm"
	KindWideDeep = "wide_deep"
	KindDeepFM   = "deepfm"
	KindDCN      = "dcn"
	KindDCNv2    = "dcn_v2"
	KindDLRM     = "dlrm"
	KindAIBox    = "aibox"
)

// Kinds lists the models of the zoo.
func Kinds() []string {
	return []string{KindAIBox, KindDCN, KindDCNv2, KindDeepFM, KindDLRM, KindFM, KindLR, KindWideDeep}
}

// Ways to combine the cross network and the deep network.
const (
	Parallel = "parallel" // both have the same input; the output layer has both results
	Stacked  = "stacked"  // the deep network's input is the cross network's result
)

// Spec describes a model. Fields that a kind does not use are ignored.
type Spec struct {
	Kind   string
	Fields []string // sparse fields, in the order of the bags
	Dense  []string // dense features, in the order of their columns

	EmbeddingDim int
	BottomLayers []int   // dlrm: the last is EmbeddingDim; ignored without dense features
	HiddenLayers []int   // wide_deep, deepfm, dcn, dcn_v2: the deep network; dlrm: the top network
	CrossLayers  int     // dcn, dcn_v2
	CrossRank    int     // dcn_v2: 0 for full matrices
	Structure    string  // dcn, dcn_v2: Parallel (also "") or Stacked
	Towers       []Tower // aibox; if empty, one tower over all dense features with HiddenLayers

	// DenseVectors gives each dense feature of fm and deepfm a vector of its own. It is multiplied
	// by the feature and takes part in the interactions like those of the fields.
	DenseVectors bool

	Activation string // of hidden layers; "" for relu
	// EmbeddingActivation is the activation of the pooled embeddings of aibox; "" for Activation.
	EmbeddingActivation string

	Dropout   float64 // share of hidden values set to zero in training, [0, 1)
	BatchNorm bool
	Pooling   string   // sum (also "") or mean
	Poolings  []string // of each field, "" for Pooling; nil: Pooling for all fields
	Seed      uint64
}

// Tower is one network of the aibox model, over the embeddings and one kind of dense features.
type Tower struct {
	Name   string
	Dense  []int // columns of Spec.Dense; if empty, the tower has only embeddings
	Layers []int // hidden layers; if empty, Spec.HiddenLayers
}

// linear reports whether rows begin with a linear weight.
func (s Spec) linear() bool {
	return s.Kind == KindLR || s.Kind == KindFM || s.Kind == KindWideDeep || s.Kind == KindDeepFM
}

// poolingOf returns how the field with the given index is pooled.
func (s Spec) poolingOf(field int) (ops.Pooling, error) {
	name := cmp.Or(s.Pooling, ops.PoolSum.String())
	if s.Poolings != nil {
		name = cmp.Or(s.Poolings[field], name)
	}
	return ops.ParsePooling(name)
}

// RowDim returns the number of values in a row.
func (s Spec) RowDim() int {
	switch {
	case s.Kind == KindLR:
		return 1
	case s.linear():
		return 1 + s.EmbeddingDim
	default:
		return s.EmbeddingDim
	}
}

// Validate reports all faults of the spec, joined.
func (s Spec) Validate() error {
	if !slices.Contains(Kinds(), s.Kind) {
		return fmt.Errorf("model: no kind %q; there are %s", s.Kind, strings.Join(Kinds(), ", "))
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("model: %s: "+format, append([]any{s.Kind}, args...)...))
	}
	layers := func(what string, sizes []int) {
		for i, n := range sizes {
			if n < 1 {
				fault("%s: layer %d has %d units, want at least 1", what, i, n)
			}
		}
	}
	if len(s.Fields) == 0 {
		fault("there is no sparse field, of which every model needs at least one")
	}
	if s.Kind != KindLR && s.EmbeddingDim < 1 {
		fault("embedding dimension %d, want at least 1", s.EmbeddingDim)
	}
	for _, name := range []string{s.Activation, s.EmbeddingActivation} {
		if _, err := ops.ParseActivation(cmp.Or(name, ops.ReLU.String())); err != nil {
			fault("no activation %q; there are %s", name, strings.Join(ops.ActivationNames(), ", "))
		}
	}
	if s.Poolings != nil && len(s.Poolings) != len(s.Fields) {
		fault("poolings of %d fields, but there are %d", len(s.Poolings), len(s.Fields))
	}
	for _, name := range append([]string{s.Pooling}, s.Poolings...) {
		if _, err := ops.ParsePooling(cmp.Or(name, ops.PoolSum.String())); err != nil {
			fault("no pooling %q; there are %s", name, strings.Join(ops.PoolingNames(), ", "))
		}
	}
	if s.Dropout < 0 || s.Dropout >= 1 || s.Dropout != s.Dropout {
		fault("dropout %g, want 0 <= dropout < 1", s.Dropout)
	}
	if s.DenseVectors && s.Kind != KindFM && s.Kind != KindDeepFM {
		fault("dense features have vectors only in fm and deepfm")
	}
	switch s.Kind {
	case KindFM:
		if len(s.Fields) < 2 {
			fault("there is only %d field, but interactions are between fields; lr is the model without them", len(s.Fields))
		}
	case KindWideDeep, KindDeepFM:
		layers("hidden layers", s.HiddenLayers)
		if len(s.HiddenLayers) == 0 {
			fault("no hidden layers")
		}
	case KindDCN, KindDCNv2:
		layers("hidden layers", s.HiddenLayers)
		if s.CrossLayers < 1 {
			fault("%d cross layers, want at least 1", s.CrossLayers)
		}
		if s.CrossRank < 0 || s.Kind == KindDCN && s.CrossRank != 0 {
			fault("cross rank %d: want 0 for full matrices or, for dcn_v2, a positive rank", s.CrossRank)
		}
		if s.Structure != "" && s.Structure != Parallel && s.Structure != Stacked {
			fault("structure %q, want %s or %s", s.Structure, Parallel, Stacked)
		}
	case KindDLRM:
		s.validateDLRM(fault, layers)
	case KindAIBox:
		s.validateTowers(fault, layers)
	}
	return errors.Join(faults...)
}

func (s Spec) validateDLRM(fault func(string, ...any), layers func(string, []int)) {
	layers("hidden layers", s.HiddenLayers)
	if len(s.HiddenLayers) == 0 {
		fault("no hidden layers for the top network")
	}
	if len(s.Dense) == 0 {
		if len(s.Fields) < 2 {
			fault("%d field and no dense features: there is no pair to multiply", len(s.Fields))
		}
		return
	}
	layers("bottom layers", s.BottomLayers)
	switch n := len(s.BottomLayers); {
	case n == 0:
		fault("no bottom layers, but %d dense features", len(s.Dense))
	case s.BottomLayers[n-1] != s.EmbeddingDim:
		fault("the last bottom layer has %d units, want the embedding dimension %d", s.BottomLayers[n-1], s.EmbeddingDim)
	}
}

func (s Spec) validateTowers(fault func(string, ...any), layers func(string, []int)) {
	if len(s.Towers) == 0 && len(s.HiddenLayers) == 0 {
		fault("no towers and no hidden layers")
	}
	layers("hidden layers", s.HiddenLayers)
	seen := map[string]bool{}
	for i, t := range s.Towers {
		if t.Name == "" || strings.ContainsAny(t.Name, "/ \t\n") || seen[t.Name] {
			fault("tower %d is named %q: names must be unique, not empty, and without slash and space", i, t.Name)
		}
		seen[t.Name] = true
		if len(t.Layers) == 0 && len(s.HiddenLayers) == 0 {
			fault("tower %q has no layers", t.Name)
		}
		layers("tower "+t.Name, t.Layers)
		for _, c := range t.Dense {
			if c < 0 || c >= len(s.Dense) {
				fault("tower %q: dense column %d of %d", t.Name, c, len(s.Dense))
			}
		}
	}
}

// towers returns the towers of the aibox model with their defaults filled in.
func (s Spec) towers() []Tower {
	towers := slices.Clone(s.Towers)
	if len(towers) == 0 {
		towers = []Tower{{Name: "joint"}}
		for c := range s.Dense {
			towers[0].Dense = append(towers[0].Dense, c)
		}
	}
	for i := range towers {
		if len(towers[i].Layers) == 0 {
			towers[i].Layers = s.HiddenLayers
		}
	}
	return towers
}
