package model

import (
	"cmp"

	"aibox/trainer/ops"

	"gorgonia.org/gorgonia"
)

// aibox is the joint network of AIBox §2.2, Figure 1:
//
//	emb = embeddingActivation(pooled rows)
//
//
//	tower 0:  [emb, dense₀]            -> h₀₁ … h₀ₗ
//	tower 1:  [emb, dense₁, h₀₁, h₀ₗ]  -> h₁₁ … h₁ₗ
//	tower 2:  [emb, dense₂, h₁₁, h₁ₗ]  -> …
//	logit  =  output([h₀ₗ, h₁ₗ, h₂ₗ, …])
//
// Each tower has one kind of dense features. The first hidden layer of a tower (low-level features)
// and its last one (abstract features) are part of the input of the next tower. A tower of one
// layer passes on that layer once.
//
// The paper uses ReLU as the activation of the embeddings (§2.1). With Adagrad for the rows, whose
// first steps are far longer than the initial values of rows, most values become negative sooner or
// later. Behind ReLU they would get no gradient that could bring them back.
func (b *builder) aibox(pooled *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	act, err := ops.ParseActivation(cmp.Or(b.spec.EmbeddingActivation, b.act.String()))
	if err != nil {
		b.err = err
		return nil
	}
	emb := b.name(b.check(ops.Activate(act, pooled)), b.namesOf(pooled, "pooled"))
	var lasts []*gorgonia.Node
	var first, last *gorgonia.Node // of the previous tower
	for _, tower := range b.spec.towers() {
		handed := last
		if first == last {
			first = nil
		}
		input := b.concat(emb, b.denseColumns(tower.Dense), first, handed)
		first, last = b.mlp("tower/"+tower.Name, tower.Layers, true, input)
		if b.err != nil {
			return nil
		}
		lasts = append(lasts, last)
	}
	return b.output(b.concat(lasts...))
}

// denseColumns returns columns of the dense features in the given order, or nil if there are none.
func (b *builder) denseColumns(columns []int) *gorgonia.Node {
	x := b.densePart()
	if b.err != nil || x == nil {
		return nil
	}
	var parts []*gorgonia.Node
	for i := 0; i < len(columns); {
		// A run of neighbouring columns is one slice.
		j := i + 1
		for j < len(columns) && columns[j] == columns[j-1]+1 {
			j++
		}
		parts = append(parts, b.columns(len(b.spec.Dense), columns[i], columns[j-1]+1, x))
		i = j
	}
	if len(parts) == 0 {
		return nil
	}
	return b.concat(parts...)
}
