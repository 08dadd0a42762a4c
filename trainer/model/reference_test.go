package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"aibox/internal/kernel"
	"aibox/trainer/engine"
	"aibox/trainer/ops"
	"aibox/trainer/optim"
)

// reference computes logits from the definitions in doc.go and aibox.go, one
// example after the other in double precision, sharing nothing with the graphs
// but the parameters.
type reference struct {
	spec   Spec
	values map[string][]float32
	shapes map[string][]int
	rounds bool // to bfloat16 before products of layers of more than one unit
}

func newReference(m *Model) *reference {
	r := &reference{spec: m.Spec(), values: map[string][]float32{}, shapes: map[string][]int{}}
	for _, p := range m.Params() {
		r.values[p.Name], r.shapes[p.Name] = p.Data, p.Shape
	}
	return r
}

// pooled is the pooled row of every field of example e.
func (r *reference) pooled(in *Inputs, e int) [][]float64 {
	var all [][]float64
	d := r.spec.RowDim()
	for f := range r.spec.Fields {
		b := e*len(r.spec.Fields) + f
		sum, total := make([]float64, d), 0.0
		for k := in.Offsets[b]; k < in.Offsets[b+1]; k++ {
			w := 1.0
			if in.BagWeights != nil {
				w = float64(in.BagWeights[k])
			}
			total += w
			for j := range sum {
				sum[j] += w * float64(in.Rows[int(in.Index[k])*d+j])
			}
		}
		if p, err := r.spec.poolingOf(f); err == nil && p == ops.PoolMean && total != 0 {
			for j := range sum {
				sum[j] /= total
			}
		}
		all = append(all, sum)
	}
	return all
}

// denseVectors are the vectors of the dense features x, if the model has some.
func (r *reference) denseVectors(x []float64) (all [][]float64) {
	d := r.spec.EmbeddingDim
	for p := range len(r.values["dense_vectors"]) / d {
		v := make([]float64, d)
		for i := range v {
			v[i] = x[p] * float64(r.values["dense_vectors"][p*d+i])
		}
		all = append(all, v)
	}
	return all
}

func (r *reference) activation(x float64) float64 {
	switch r.spec.Activation {
	case "tanh":
		return math.Tanh(x)
	case "sigmoid":
		return 1 / (1 + math.Exp(-x))
	case "leaky_relu":
		return max(x, 0.01*x)
	}
	return max(x, 0)
}

// layer is x·weight + bias; the bias may be missing.
func (r *reference) layer(name string, x []float64) []float64 {
	w, shape := r.values[name+"/weight"], r.shapes[name+"/weight"]
	if shape[0] != len(x) {
		panic(fmt.Sprintf("%s has %d inputs, the reference %d", name, shape[0], len(x)))
	}
	y := make([]float64, shape[1])
	for j := range y {
		if b := r.values[name+"/bias"]; b != nil {
			y[j] = float64(b[j])
		}
		for i, v := range x {
			y[j] += r.product(shape, v, w[i*shape[1]+j])
		}
	}
	return y
}

// product is that of an input and a weight of a layer.
func (r *reference) product(shape []int, x float64, w float32) float64 {
	if r.rounds && shape[0] > 1 && shape[1] > 1 {
		return float64(kernel.RoundBF16(float32(x))) * float64(kernel.RoundBF16(w))
	}
	return x * float64(w)
}

// mlp returns the results of all hidden layers.
func (r *reference) mlp(name string, layers int, x []float64) [][]float64 {
	var all [][]float64
	for l := range layers {
		y := r.layer(fmt.Sprintf("%s/%d", name, l), x)
		for j := range y {
			y[j] = r.activation(y[j])
		}
		all = append(all, y)
		x = y
	}
	return all
}

func join(parts ...[]float64) []float64 {
	var all []float64
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// pairDots are the dot products of vectors v and w < v, v ascending.
func pairDots(vectors [][]float64) []float64 {
	var all []float64
	for v := range vectors {
		for w := range v {
			all = append(all, dot(vectors[v], vectors[w]))
		}
	}
	return all
}

func sum(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total += v
	}
	return total
}

func (r *reference) logit(in *Inputs, e int) float64 {
	s := r.spec
	rows := r.pooled(in, e)
	var x []float64
	for _, v := range in.Dense[e*len(s.Dense) : (e+1)*len(s.Dense)] {
		x = append(x, float64(v))
	}
	z := 0.0
	if s.linear() {
		for f := range rows {
			z += rows[f][0]
			rows[f] = rows[f][1:]
		}
		for i, v := range x {
			z += v * float64(r.values["linear/weight"][i])
		}
		if b := r.values["linear/bias"]; b != nil {
			z += float64(b[0])
		}
	}
	emb := join(rows...)
	switch s.Kind {
	case KindLR:
		return z
	case KindFM:
		return z + sum(pairDots(append(rows, r.denseVectors(x)...)))
	case KindWideDeep, KindDeepFM:
		hidden := r.mlp("deep", len(s.HiddenLayers), join(emb, x))
		z += r.layer("output", hidden[len(hidden)-1])[0]
		if s.Kind == KindDeepFM {
			z += sum(pairDots(append(rows, r.denseVectors(x)...)))
		}
		return z
	case KindDLRM:
		vectors := rows
		var bottom []float64
		if len(x) > 0 {
			hidden := r.mlp("bottom", len(s.BottomLayers), x)
			bottom = hidden[len(hidden)-1]
			vectors = append([][]float64{bottom}, rows...)
		}
		hidden := r.mlp("top", len(s.HiddenLayers), join(bottom, pairDots(vectors)))
		return r.layer("output", hidden[len(hidden)-1])[0]
	case KindAIBox:
		return r.aibox(emb, x)
	}
	x0 := join(emb, x)
	crossed := x0
	for l := range s.CrossLayers {
		crossed = r.cross(fmt.Sprintf("cross/%d", l), x0, crossed)
	}
	out := crossed
	if n := len(s.HiddenLayers); n > 0 && s.Structure == Stacked {
		out = r.mlp("deep", n, crossed)[n-1]
	} else if n > 0 {
		out = join(crossed, r.mlp("deep", n, x0)[n-1])
	}
	return r.layer("output", out)[0]
}

func (r *reference) aibox(emb, dense []float64) float64 {
	if name := r.spec.EmbeddingActivation; name == "" {
		for i := range emb {
			emb[i] = r.activation(emb[i])
		}
	} else if name != "identity" {
		panic("no reference for " + name)
	}
	var handed, lasts []float64
	for _, t := range r.spec.towers() {
		x := append([]float64(nil), emb...)
		for _, c := range t.Dense {
			x = append(x, dense[c])
		}
		hidden := r.mlp("tower/"+t.Name, len(t.Layers), join(x, handed))
		last := hidden[len(hidden)-1]
		handed = last
		if len(hidden) > 1 {
			handed = join(hidden[0], last)
		}
		lasts = join(lasts, last)
	}
	return r.layer("output", lasts)[0]
}

func (r *reference) cross(name string, x0, x []float64) []float64 {
	bias := r.values[name+"/bias"]
	y := make([]float64, len(x))
	for j := range y {
		var z float64
		switch {
		case r.spec.Kind == KindDCN: // x0·(x·w) + b + x
			for i, v := range x {
				z += v * float64(r.values[name+"/weight"][i])
			}
			y[j] = x0[j]*z + float64(bias[j]) + x[j]
			continue
		case r.spec.CrossRank == 0:
			for i, v := range x {
				z += r.product([]int{len(x), len(x)}, v, r.values[name+"/weight"][i*len(x)+j])
			}
		default:
			for k := range r.spec.CrossRank {
				h := 0.0
				for i, v := range x {
					h += r.product([]int{len(x), r.spec.CrossRank}, v, r.values[name+"/v"][i*r.spec.CrossRank+k])
				}
				z += r.product([]int{r.spec.CrossRank, len(x)}, h, r.values[name+"/u"][k*len(x)+j])
			}
		}
		y[j] = x0[j]*(z+float64(bias[j])) + x[j]
	}
	return y
}

// TestReference compares the logits of every model with the reference. Batch
// normalization has its tests elsewhere.
func TestReference(t *testing.T) {
	for name, spec := range Examples() {
		if spec.BatchNorm {
			continue
		}
		rng := newRand(t, 101)
		m := mustNew(t, spec)
		perturb(rng, m)
		for range 2 { // with and without weights of bags, by chance
			in := randomInputs(rng, spec, 9, 12)
			got, err := m.Infer(in)
			if err != nil {
				t.Fatal(err)
			}
			ref := newReference(m)
			for e, z := range got {
				if want := ref.logit(in, e); math.Abs(float64(z)-want) > 2e-5*(1+math.Abs(want)) {
					t.Errorf("%s: logit of example %d is %g, the reference says %g", name, e, z, want)
				}
			}
		}
	}
}

// TestReferenceBF16 compares the logits of every model in bfloat16 with the reference that
// rounds the same numbers. Where a number of the reference lies so near to the middle
// between two of bfloat16 that the model rounds it the other way, logits differ by more than
// rounding to float32 explains, so only most of them have to be near.
func TestReferenceBF16(t *testing.T) {
	precision = engine.BF16
	defer func() { precision = engine.Float32 }()
	for name, spec := range Examples() {
		if spec.BatchNorm {
			continue
		}
		spec = wide(spec)
		rng := newRand(t, 103)
		m := mustNew(t, spec)
		perturb(rng, m)
		in := randomInputs(rng, spec, 200, 90)
		got, err := m.Infer(in)
		if err != nil {
			t.Fatal(err)
		}
		exact, rounding := newReference(m), newReference(m)
		rounding.rounds = true
		near, rounded := 0, 0
		for e, z := range got {
			want, unrounded := rounding.logit(in, e), exact.logit(in, e)
			if math.Abs(float64(z)-want) <= 2e-5*(1+math.Abs(want)) {
				near++
			}
			if math.Abs(float64(z)-unrounded) > 2e-5*(1+math.Abs(unrounded)) {
				rounded++
			}
		}
		layers := slices.ContainsFunc(m.Params(), func(p *optim.Param) bool { return len(p.Shape) == 2 && p.Shape[0] > 1 && p.Shape[1] > 1 })
		if near < in.N*95/100 || layers && rounded < in.N*9/10 || !layers && rounded > 0 {
			t.Errorf("%s: of %d logits %d are those of the reference, and %d differ from those without rounding", name, in.N, near, rounded)
		}
	}
}
