package model

import (
	"fmt"

	"aibox/trainer/ops"

	"gorgonia.org/gorgonia"
)

// network builds the model of the spec and returns its logits (N, 1).
func (b *builder) network() *gorgonia.Node {
	pooled := b.pooled()
	switch b.spec.Kind {
	case KindLR:
		return b.add(b.firstOrder(pooled), b.linearDense(true))
	case KindFM:
		return b.add(b.firstOrder(pooled), b.linearDense(true), b.secondOrder(b.concat(b.embeddings(pooled), b.denseVectors())))
	case KindWideDeep:
		return b.add(b.firstOrder(pooled), b.linearDense(false), b.deep(b.embeddings(pooled)))
	case KindDeepFM:
		emb := b.embeddings(pooled)
		return b.add(b.firstOrder(pooled), b.linearDense(false), b.secondOrder(b.concat(emb, b.denseVectors())), b.deep(emb))
	case KindDCN, KindDCNv2:
		return b.crossNetwork(b.concat(pooled, b.densePart()))
	case KindDLRM:
		return b.dlrm(pooled)
	default:
		return b.aibox(pooled)
	}
}

// firstOrder adds the sum of all fields' linear weights, (N, 1).
func (b *builder) firstOrder(pooled *gorgonia.Node) *gorgonia.Node {
	weights := b.columns(b.spec.RowDim(), 0, 1, pooled)
	if b.err != nil {
		return nil
	}
	return b.layer("first_order", b.check(ops.RowSum(weights)))
}

// embeddings returns the pooled rows without the linear weights, (N, F*D).
func (b *builder) embeddings(pooled *gorgonia.Node) *gorgonia.Node {
	return b.columns(b.spec.RowDim(), 1, b.spec.RowDim(), pooled)
}

// secondOrder adds the sum of the dot products of all pairs of fields, (N, 1).
func (b *builder) secondOrder(emb *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.layer("second_order", b.check(ops.FactorizationMachine(b.spec.EmbeddingDim, emb)))
}

// denseVectors adds the vectors of the dense features, each multiplied by its feature, (N, P*D). It
// returns nil unless the spec asks for them.
func (b *builder) denseVectors() *gorgonia.Node {
	x := b.densePart()
	if b.err != nil || x == nil || !b.spec.DenseVectors {
		return nil
	}
	d := b.spec.EmbeddingDim
	v := b.param("dense_vectors", uniform(vectorFanIn), len(b.spec.Dense)*d)
	if b.err != nil {
		return nil
	}
	var names []string
	for _, name := range b.spec.denseNames() {
		names = append(names, positions(name, d)...)
	}
	b.axes("dense_vectors", names)
	return b.name(b.check(ops.ScaleVectors(d, x, v)), names)
}

// vectorFanIn makes the initial vectors of dense features uniform in ±0.01, the size of the values
// of new rows.
const vectorFanIn = 10000

// LinearWeight names the parameter with the linear weights of dense features.
const LinearWeight = "linear/weight"

// linearDense adds dense·w, (N, 1), with a bias for models that have no output layer. Without dense
// features it is the bias alone; without either it is nil.
func (b *builder) linearDense(bias bool) *gorgonia.Node {
	x := b.densePart()
	if b.err != nil || x == nil && !bias {
		return nil
	}
	var w, beta *gorgonia.Node
	if x != nil {
		w = b.param(LinearWeight, constant(0), len(b.spec.Dense), 1)
		b.axes(LinearWeight, b.spec.denseNames(), nil)
	}
	if bias {
		beta = b.param("linear/bias", constant(0), 1)
	}
	if b.err != nil {
		return nil
	}
	if x == nil {
		return b.layer("linear", b.check(ops.Bias(b.n, beta)))
	}
	return b.layer("linear", b.check(ops.Linear(ops.Identity, x, w, beta)))
}

// deep adds the deep network over embeddings and dense features, to one logit.
func (b *builder) deep(emb *gorgonia.Node) *gorgonia.Node {
	_, last := b.mlp("deep", b.spec.HiddenLayers, true, b.concat(emb, b.densePart()))
	return b.output(last)
}

// dlrm adds the model of Naumov et al. 2019: a bottom network over the dense features, dot products
// of all pairs of its result and the embeddings, and a top network over both.
func (b *builder) dlrm(emb *gorgonia.Node) *gorgonia.Node {
	var bottom *gorgonia.Node
	if x := b.densePart(); x != nil {
		_, bottom = b.mlp("bottom", b.spec.BottomLayers, false, x)
		// Its units are the values of an embedding, whose dimension may change.
		b.nameUnits(fmt.Sprintf("bottom/%d", len(b.spec.BottomLayers)-1), bottom)
	}
	vectors := b.concat(bottom, emb)
	if b.err != nil {
		return nil
	}
	dots := b.name(b.check(ops.Interact(b.spec.EmbeddingDim, vectors)), b.spec.pairNames())
	_, last := b.mlp("top", b.spec.HiddenLayers, true, b.concat(bottom, dots))
	return b.output(last)
}

// crossNetwork adds DCN (Wang et al. 2017) or DCN v2 (2020), parallel or stacked. Without hidden
// layers it is the cross network alone.
func (b *builder) crossNetwork(x0 *gorgonia.Node) *gorgonia.Node {
	x := x0
	for i := range b.spec.CrossLayers {
		x = b.crossLayer(fmt.Sprintf("cross/%d", i), x0, x)
	}
	if len(b.spec.HiddenLayers) == 0 {
		return b.output(x)
	}
	if b.spec.Structure == Stacked {
		_, last := b.mlp("deep", b.spec.HiddenLayers, true, x)
		return b.output(last)
	}
	_, last := b.mlp("deep", b.spec.HiddenLayers, true, x0)
	return b.output(b.concat(x, last))
}

func (b *builder) crossLayer(name string, x0, x *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	c, r := x0.Shape()[1], b.spec.CrossRank
	names := b.namesOf(x0, "x")
	b.axes(name+"/bias", names)
	switch {
	case b.spec.Kind == KindDCN:
		w := b.param(name+"/weight", uniform(c), c, 1)
		beta := b.param(name+"/bias", constant(0), c)
		if b.err != nil {
			return nil
		}
		b.axes(name+"/weight", names, nil)
		return b.name(b.check(ops.CrossVector(x0, x, w, beta)), names)
	case r == 0:
		w := b.param(name+"/weight", uniform(c), c, c)
		beta := b.param(name+"/bias", constant(0), c)
		if b.err != nil {
			return nil
		}
		b.axes(name+"/weight", names, names)
		return b.name(b.check(ops.CrossMatrix(x0, x, w, beta)), names)
	default:
		v := b.param(name+"/v", uniform(c), c, r)
		u := b.param(name+"/u", uniform(r), r, c)
		beta := b.param(name+"/bias", constant(0), c)
		if b.err != nil {
			return nil
		}
		b.axes(name+"/v", names, nil)
		b.axes(name+"/u", nil, names)
		return b.name(b.check(ops.CrossLowRank(x0, x, v, u, beta)), names)
	}
}
