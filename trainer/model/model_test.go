package model

import (
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"

	"aibox/internal/panics"
)

// TestLearns trains every kind on a task that is all interaction: the label is
// whether two fields agree. Models with interactions must get it right, lr
// must not.
func TestLearns(t *testing.T) {
	const n, values = 256, 4
	spec := Spec{Fields: []string{"a", "b"}, Dense: []string{"noise"}, EmbeddingDim: 8,
		BottomLayers: []int{8}, HiddenLayers: []int{32, 16}, CrossLayers: 2, Seed: 3}
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			rng := newRand(t, 51)
			spec := spec
			spec.Kind = kind
			m := mustNew(t, spec)
			in := &Inputs{N: n, Offsets: []int32{0}}
			for range n {
				a, b := rng.Intn(values), rng.Intn(values)
				if rng.Intn(2) == 0 {
					b = a
				}
				in.Index = append(in.Index, int32(a), int32(values+b))
				in.Offsets = append(in.Offsets, int32(len(in.Index)-1), int32(len(in.Index)))
				in.Dense = append(in.Dense, rng.Float32())
				if a == b {
					in.Labels = append(in.Labels, 1)
				} else {
					in.Labels = append(in.Labels, 0)
				}
			}
			for range 2 * values * spec.RowDim() {
				in.Rows = append(in.Rows, 0.3*float32(rng.NormFloat64()))
			}
			first := loss(t, m, in)
			for range 400 {
				res, err := m.Train(in)
				if err != nil {
					t.Fatal(err)
				}
				descend(m, in, res, 0.5)
			}
			last := loss(t, m, in)
			t.Logf("loss %.3f -> %.3f", first, last)
			if kind == KindLR {
				if last < 0.5 {
					t.Errorf("a linear model learned an interaction: loss %.3f", last)
				}
			} else if last > 0.25 {
				t.Errorf("loss %.3f after training, %.3f before", last, first)
			}
		})
	}
}

func loss(t *testing.T, m *Model, in *Inputs) float64 {
	t.Helper()
	res, err := m.Train(in)
	if err != nil {
		t.Fatal(err)
	}
	return res.Loss
}

// TestLRByHand checks the smallest model against numbers worked out by hand.
func TestLRByHand(t *testing.T) {
	m := mustNew(t, Spec{Kind: KindLR, Fields: []string{"f", "g"}, Dense: []string{"x"}})
	params := m.Params()
	if len(params) != 2 || params[0].Name != "linear/weight" || params[1].Name != "linear/bias" {
		t.Fatalf("parameters are %v", params)
	}
	params[0].Data[0], params[1].Data[0] = 2, 0.5
	in := &Inputs{
		N:    2,
		Rows: []float32{1, -1, 4},
		// Example 0: f = {row 0, row 0}, g = {}. Example 1: f = {row 2}, g = {row 1}.
		Offsets:    []int32{0, 2, 2, 3, 4},
		Index:      []int32{0, 0, 2, 1},
		BagWeights: []float32{1, 0.5, 1, 2},
		Dense:      []float32{0.25, -1},
		Labels:     []float32{1, 0},
		Weights:    []float32{1, 3},
	}
	res, err := m.Train(in)
	if err != nil {
		t.Fatal(err)
	}
	// 1·1 + 0.5·1 + 2·0.25 + 0.5 and 4 - 2·1 + 2·(-1) + 0.5
	z := []float64{2.5, 0.5}
	for i, want := range z {
		if got := float64(res.Logits[i]); math.Abs(got-want) > 1e-6 {
			t.Errorf("logit %d is %g, want %g", i, got, want)
		}
	}
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	wantLoss := (-math.Log(sigmoid(z[0])) - 3*math.Log(1-sigmoid(z[1]))) / 2
	if math.Abs(res.Loss-wantLoss) > 1e-6 {
		t.Errorf("loss is %g, want %g", res.Loss, wantLoss)
	}
	d0, d1 := (sigmoid(z[0])-1)/2, 3*sigmoid(z[1])/2
	for i, want := range []float64{1.5 * d0, 2 * d1, d1} {
		if got := float64(res.RowGrads[i]); math.Abs(got-want) > 1e-6 {
			t.Errorf("gradient of row %d is %g, want %g", i, got, want)
		}
	}
	for i, want := range []float64{0.25*d0 - d1, d0 + d1} {
		if got := float64(params[i].Grad[0]); math.Abs(got-want) > 1e-6 {
			t.Errorf("gradient of %s is %g, want %g", params[i].Name, got, want)
		}
	}
}

// TestNoFeatures trains on a mini-batch without a single sparse feature.
func TestNoFeatures(t *testing.T) {
	for name, spec := range Examples() {
		m := mustNew(t, spec)
		in := &Inputs{N: 3, Offsets: make([]int32, 3*len(spec.Fields)+1), Dense: make([]float32, 3*len(spec.Dense)), Labels: []float32{1, 0, 0}}
		res, err := m.Train(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(res.Logits) != 3 || len(res.RowGrads) != 0 {
			t.Errorf("%s: %d logits, %d row gradients", name, len(res.Logits), len(res.RowGrads))
		}
		if _, err := m.Infer(in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotFinite checks that a diverged loss is an error and leaves buffers
// alone, and that the model works again afterwards.
func TestNotFinite(t *testing.T) {
	spec := Examples()["wide_deep norm"]
	rng := newRand(t, 61)
	m := mustNew(t, spec)
	in := randomInputs(rng, spec, 5, 7)
	before := loss(t, m, in)
	buffers := func() string {
		var all [][]float32
		for _, p := range m.Buffers() {
			all = append(all, p.Data)
		}
		return digest(all...)
	}
	want := buffers()
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		saved := in.Dense[0]
		in.Dense[0] = bad
		if _, err := m.Train(in); !errors.Is(err, ErrNotFinite) {
			t.Errorf("dense feature %g: error %v", bad, err)
		}
		if buffers() != want {
			t.Errorf("dense feature %g: running statistics have changed", bad)
		}
		in.Dense[0] = saved
	}
	if after := loss(t, m, in); after != before {
		t.Errorf("loss is %g, it was %g before the bad mini-batches", after, before)
	}
	in.Dense[0] = float32(math.NaN())
	if _, err := m.Infer(in); !errors.Is(err, ErrNotFinite) {
		t.Errorf("Infer: error %v", err)
	}
}

// TestRunningStatistics repeats one mini-batch until the running statistics
// are its own; inference then agrees with training.
func TestRunningStatistics(t *testing.T) {
	spec := Examples()["wide_deep norm"]
	rng := newRand(t, 71)
	m := mustNew(t, spec)
	in := randomInputs(rng, spec, 500, 40)
	var res Result
	for i := range 200 {
		var err error
		if res, err = m.Train(in); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for _, p := range m.Buffers() {
				if strings.HasSuffix(p.Name, "variance") && math.Abs(float64(p.Data[0])-0.9) > 0.2 {
					t.Errorf("%s is %g after one step: want 0.9 and a tenth of the mini-batch's", p.Name, p.Data[0])
				}
			}
		}
	}
	want := append([]float32(nil), res.Logits...)
	got, err := m.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		// The running variance is the unbiased one, 500/499 of the other.
		if math.Abs(float64(got[i]-want[i])) > 0.02 {
			t.Errorf("logit %d: %g in inference, %g in training", i, got[i], want[i])
		}
	}
}

// TestDropout checks that the step decides what is dropped, and that inference
// drops nothing.
func TestDropout(t *testing.T) {
	spec := Examples()["wide_deep dropout"]
	rng := newRand(t, 81)
	m := mustNew(t, spec)
	in := randomInputs(rng, spec, 50, 20)
	in.Step = 1
	one := loss(t, m, in)
	in.Step = 2
	two := loss(t, m, in)
	in.Step = 1
	if again := loss(t, m, in); again != one {
		t.Errorf("step 1 gives %g and %g", one, again)
	}
	if one == two {
		t.Errorf("steps 1 and 2 give the same loss %g", one)
	}
	spec.Dropout = 0
	plain := mustNew(t, spec)
	want, err := plain.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	if digest(got) != digest(want) {
		t.Error("inference differs from that of the model without dropout")
	}
}

// TestInitialValues checks range, reproducibility and independence.
func TestInitialValues(t *testing.T) {
	spec := Examples()["aibox"]
	m := mustNew(t, spec)
	for _, p := range m.Params() {
		if p.Name != "tower/one/0/weight" {
			continue
		}
		bound := 1 / math.Sqrt(float64(p.Shape[0]))
		var sum, most float64
		for _, v := range p.Data {
			sum += float64(v)
			most = max(most, math.Abs(float64(v)))
		}
		mean := sum / float64(len(p.Data))
		if most > bound || most < 0.8*bound || math.Abs(mean) > 0.3*bound {
			t.Errorf("%s: largest %g, mean %g, want uniform in ±%g", p.Name, most, mean, bound)
		}
	}
	values := func(s Spec) map[string]string {
		all := map[string]string{}
		for _, p := range mustNew(t, s).Params() {
			all[p.Name] = digest(p.Data)
		}
		return all
	}
	first, again := values(spec), values(spec)
	fewer := spec
	fewer.Towers = spec.Towers[:2]
	fewerValues := values(fewer)
	spec.Seed++
	other := values(spec)
	for name, v := range first {
		if again[name] != v {
			t.Errorf("%s differs between two models of one seed", name)
		}
		if other[name] == v {
			t.Errorf("%s is the same for two seeds", name)
		}
		if w, ok := fewerValues[name]; ok && w != v && !strings.HasPrefix(name, "output/") {
			t.Errorf("%s depends on whether there is a third tower", name)
		}
	}
}

// TestInitialValuesDiffer checks that parameters of one shape do not begin
// alike.
func TestInitialValuesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, p := range mustNew(t, Examples()["dcn_v2"]).Params() {
		if !strings.HasSuffix(p.Name, "weight") {
			continue
		}
		start := digest(p.Data[:4])
		if strings.HasPrefix(p.Name, "cross/") && seen[start] != "" {
			t.Errorf("%s begins like %s", p.Name, seen[start])
		}
		seen[start] = p.Name
	}
}

// TestTowers checks Figure 1's connections by the widths of the layers.
func TestTowers(t *testing.T) {
	m := mustNew(t, Examples()["aibox"])
	const emb = 3 * 3
	for name, rows := range map[string]int{
		"tower/one/0/weight":   emb + 3,
		"tower/two/0/weight":   emb + 1 + 5 + 4, // first and last of one
		"tower/three/0/weight": emb + 4,         // the only layer of two, once
		"output/weight":        4 + 4 + 4,
	} {
		found := false
		for _, p := range m.Params() {
			if p.Name == name {
				found = true
				if p.Shape[0] != rows {
					t.Errorf("%s has %d inputs, want %d", name, p.Shape[0], rows)
				}
			}
		}
		if !found {
			t.Errorf("no parameter %s", name)
		}
	}
}

// TestValidate wants every fault named at once.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want []string
	}{
		{Spec{Kind: "dnn"}, []string{`no kind "dnn"`, "wide_deep"}},
		{Spec{Kind: KindFM, Fields: []string{"f"}, Pooling: "max", Dropout: 1, Activation: "gelu"},
			[]string{"dimension 0", `pooling "max"`, "dropout 1", `activation "gelu"`, "interactions are between fields"}},
		{Spec{Kind: KindDLRM, Fields: []string{"f"}, EmbeddingDim: 8, Dense: []string{"d"}, BottomLayers: []int{0, 4}},
			[]string{"no hidden layers", "last bottom layer has 4", "layer 0 has 0"}},
		{Spec{Kind: KindDLRM, Fields: []string{"f"}, EmbeddingDim: 8, HiddenLayers: []int{4}}, []string{"no pair"}},
		{Spec{Kind: KindDCN, Fields: []string{"f"}, EmbeddingDim: 8, CrossRank: 2, Structure: "serial"},
			[]string{"0 cross layers", "cross rank 2", `structure "serial"`}},
		{Spec{Kind: KindAIBox, Fields: []string{"f"}, EmbeddingDim: 8}, []string{"no towers"}},
		{Spec{Kind: KindAIBox, Fields: []string{"f"}, EmbeddingDim: 8, Towers: []Tower{{Name: "a", Dense: []int{1}}, {Name: "a", Layers: []int{3}}}},
			[]string{`tower "a" has no layers`, "dense column 1 of 0", `named "a"`}},
		{Spec{Kind: KindLR}, []string{"no sparse field"}},
	} {
		err := c.spec.Validate()
		if err == nil {
			t.Errorf("%+v: no error", c.spec)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error lacks %q:\n%v", want, err)
			}
		}
		if _, err := New(c.spec); err == nil {
			t.Error("New made a model of a spec that is not valid")
		}
	}
	for name, spec := range Examples() {
		if err := spec.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInputsChecked breaks a mini-batch in every way.
func TestInputsChecked(t *testing.T) {
	spec := Examples()["dlrm"]
	m := mustNew(t, spec)
	for name, damage := range map[string]func(in *Inputs){
		"examples":       func(in *Inputs) { in.N = 0 },
		"rows":           func(in *Inputs) { in.Rows = in.Rows[:len(in.Rows)-1] },
		"offsets":        func(in *Inputs) { in.Offsets = in.Offsets[1:] },
		"offsets end":    func(in *Inputs) { in.Offsets[len(in.Offsets)-1]-- },
		"offsets order":  func(in *Inputs) { in.Offsets[1], in.Offsets[2] = 5, 4 },
		"index":          func(in *Inputs) { in.Index[3] = 7 },
		"negative index": func(in *Inputs) { in.Index[3] = -1 },
		"dense":          func(in *Inputs) { in.Dense = in.Dense[1:] },
		"labels":         func(in *Inputs) { in.Labels = nil },
		"weights":        func(in *Inputs) { in.Weights = []float32{1} },
		"bag weights":    func(in *Inputs) { in.BagWeights = []float32{1} },
	} {
		in := randomInputs(rand.New(rand.NewSource(91)), spec, 5, 7)
		damage(in)
		if _, err := m.Train(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPanicInAStep checks that a panic on a goroutine of the kernels does not end the process, and
// that the model can still be used.
func TestPanicInAStep(t *testing.T) {
	spec := Examples()["deepfm"]
	m := mustNew(t, spec)
	rng := newRand(t, 1)
	in := randomInputs(rng, spec, 4000, 50)
	want, err := m.Train(in)
	if err != nil {
		t.Fatal(err)
	}
	param := m.Params()[0]
	whole := param.Data
	param.Data = nil
	var p *panics.Error
	if _, err := m.Train(in); !errors.As(err, &p) {
		t.Fatalf("%v", err)
	}
	param.Data = whole
	if again, err := m.Train(in); err != nil || again.Loss != want.Loss {
		t.Errorf("afterwards: loss %v, %v, want %v", again.Loss, err, want.Loss)
	}
}
