package jobparts

import (
	"cmp"
	"slices"

	"aibox/configs"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/trainer/model"
)

// ModelSpec returns the network of a job over the fields and dense columns of schema.
func ModelSpec(job *configs.Job, schema *reader.Schema) (model.Spec, error) {
	m := job.Model
	spec := model.Spec{
		Kind: m.Kind, Fields: schema.Fields(), Dense: schema.DenseNames(), EmbeddingDim: m.EmbeddingDim,
		BottomLayers: m.BottomLayers, HiddenLayers: m.HiddenLayers,
		CrossLayers: m.CrossLayers, CrossRank: m.CrossRank, Structure: m.Structure,
		Activation: m.Activation, Dropout: m.Dropout, BatchNorm: m.BatchNorm, Pooling: m.Pooling, Seed: job.Seed,
		DenseVectors: m.DenseVectors, EmbeddingActivation: m.EmbeddingActivation,
	}
	for _, c := range job.SparseColumns() {
		spec.Poolings = append(spec.Poolings, c.Pooling)
	}
	place := map[string]int{}
	for i, name := range spec.Dense {
		place[name] = i
	}
	for t, columns := range job.TowerColumns() {
		tower := model.Tower{Name: m.Towers[t].Name, Layers: m.Towers[t].Layers}
		for _, name := range columns {
			tower.Dense = append(tower.Dense, place[name])
		}
		for _, name := range columns {
			if i, has := place[rowschema.IndicatorName(name)]; has {
				tower.Dense = append(tower.Dense, i)
			}
		}
		spec.Towers = append(spec.Towers, tower)
	}
	return spec, spec.Validate()
}

// Spaces returns the embedding space of each field of a job.
func Spaces(job *configs.Job, fields []string) []string {
	spaces := slices.Clone(fields)
	for _, c := range job.SparseColumns() {
		if i := slices.Index(fields, c.Name); i >= 0 {
			spaces[i] = cmp.Or(c.Space, c.Name)
		}
	}
	return spaces
}
