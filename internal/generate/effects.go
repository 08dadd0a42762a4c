package generate

import (
	"aibox/internal/fixmath"
	"aibox/internal/splitmix"
)

// The hashes of one value (field, rank): number i is splitmix.Mix(value + i·splitmix.Step).
//
//	0, 1    first and second draw of the linear effect
//	2, 3    speed of the drift
//	4 + 2k, 5 + 2k    first and second draw of component k of the latent vector
func (f *field) value(rank uint64) uint64 { return splitmix.Mix(f.key + rank*splitmix.Step) }

func part(value uint64, i int) uint64 { return splitmix.Mix(value + uint64(i)*splitmix.Step) }

// effectOf is the linear effect, of variance 1, of a value or a column.
func effectOf(value uint64, t turn) float64 {
	if t.sin == 0 {
		return float64(t.cos * normal(part(value, 0)))
	}
	return t.of(normal(part(value, 0)), normal(part(value, 1)))
}

// addLatent adds the latent vector of a value to bag.
func addLatent(bag []float64, value uint64, t turn) {
	if t.sin == 0 {
		for k := range bag {
			bag[k] += float64(t.cos * roughNormal(part(value, 4+2*k)))
		}
		return
	}
	for k := range bag {
		bag[k] += t.of(roughNormal(part(value, 4+2*k)), roughNormal(part(value, 5+2*k)))
	}
}

// linearPart is the linear part of the logit before scaling.
func (g *Generator) linearPart(d *day, e *example) float64 {
	linear := 0.0
	start := 0
	for i := range g.fields {
		f := &g.fields[i]
		bag := 0.0
		for _, rank := range e.ranks[start:e.ends[i]] {
			v := f.value(rank)
			bag += effectOf(v, d.drift.turn(part(v, 2), part(v, 3)))
		}
		start = e.ends[i]
		linear += float64(bag * f.weight)
	}
	for j := range g.columns {
		c := &g.columns[j]
		linear += float64(d.slopes[j] * ((fixmath.Log1p(e.dense[j]) - c.mean) / c.sd))
	}
	return linear
}

// latentBag sets e.bag to the sum of the latent vectors of field i's values.
func (g *Generator) latentBag(d *day, e *example, i, start int) {
	clear(e.bag)
	f := &g.fields[i]
	for _, rank := range e.ranks[start:e.ends[i]] {
		v := f.value(rank)
		addLatent(e.bag, v, d.drift.turn(part(v, 2), part(v, 3)))
	}
}

// pairwisePart is the pairwise part of the logit before scaling. The sum over
// all pairs of fields is half of |Σ w_f|² - Σ |w_f|² (Rendle, ICDM 2010, lemma
// 3.1).
func (g *Generator) pairwisePart(d *day, e *example) float64 {
	if g.latentDim == 0 {
		return 0
	}
	clear(e.sum)
	squares := 0.0
	start := 0
	for i := range g.fields {
		if e.ends[i] == start {
			continue
		}
		g.latentBag(d, e, i, start)
		values := float64(e.ends[i] - start)
		start = e.ends[i]
		center := d.centers[i*g.latentDim:][:g.latentDim]
		weight := g.fields[i].weight
		for k, x := range e.bag {
			x = float64((x - float64(values*center[k])) * weight)
			e.sum[k] += x
			squares += float64(x * x)
		}
	}
	all := 0.0
	for _, x := range e.sum {
		all += float64(x * x)
	}
	return (all - squares) / 2
}
