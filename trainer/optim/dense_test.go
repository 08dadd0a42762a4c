package optim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// close32 reports whether got is want up to float32 rounding over some steps.
func close32(got float32, want float64) bool {
	return math.Abs(float64(got)-want) <= 2e-5*(1+math.Abs(want))
}

func param(name string, data []float32) *Param {
	return &Param{Name: name, Shape: []int{len(data)}, Data: data, Grad: make([]float32, len(data))}
}

var denseConfigs = map[string]DenseConfig{
	"sgd":       {Kind: "sgd", LearningRate: 0.1},
	"sgd l2":    {Kind: "sgd", LearningRate: 0.1, L2: 0.03},
	"momentum":  {Kind: "momentum", LearningRate: 0.1, Momentum: 0.9, L2: 0.01},
	"adagrad":   {Kind: "adagrad", LearningRate: 0.1, Epsilon: 1e-10},
	"adagrad 1": {Kind: "adagrad", LearningRate: 0.1, Epsilon: 1e-3, InitialAccumulator: 0.5, L2: 0.01},
	"adam":      {Kind: "adam", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
	"adam l2":   {Kind: "adam", LearningRate: 0.01, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-3, L2: 0.1},
	"adamw":     {Kind: "adamw", LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.1},
}

func TestDenseAgainstReference(t *testing.T) {
	for name, cfg := range denseConfigs {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			p := param("w", []float32{0.5, -0.25, 0, 3})
			d, err := NewDense(cfg, []*Param{p})
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float64, len(p.Data))
			for i, w := range p.Data {
				want[i] = float64(w)
			}
			states := make([]refState, len(want))
			for step := 1; step <= 50; step++ {
				scale := float32(1)
				if step > 20 {
					scale = 0.5
				}
				for i := range p.Grad {
					p.Grad[i] = float32(rng.NormFloat64())
					want[i] = refDense(cfg, step, float64(scale), want[i], float64(p.Grad[i]), &states[i])
				}
				d.Step(int64(step), scale)
				for i := range want {
					if !close32(p.Data[i], want[i]) {
						t.Fatalf("step %d, value %d: %v, want %v", step, i, p.Data[i], want[i])
					}
				}
			}
		})
	}
}

// TestDenseByHand has numbers worked out on paper.
func TestDenseByHand(t *testing.T) {
	for _, c := range []struct {
		cfg  DenseConfig
		want []float32 // after gradients 2, 2 from w = 1
	}{
		{DenseConfig{Kind: "sgd", LearningRate: 0.25}, []float32{0.5, 0}},
		{DenseConfig{Kind: "sgd", LearningRate: 0.25, L2: 1}, []float32{0.25, -0.3125}},
		{DenseConfig{Kind: "momentum", LearningRate: 0.25, Momentum: 0.5}, []float32{0.5, -0.25}},
		// s = 4, then 8: w -= 2/2, then 2/sqrt(8); epsilon vanishes.
		{DenseConfig{Kind: "adagrad", LearningRate: 1, Epsilon: 1e-10}, []float32{0, -0.70710678}},
		// Constant gradients: both corrected moments are exact, so every step is lr.
		{DenseConfig{Kind: "adam", LearningRate: 0.125, Beta1: 0.5, Beta2: 0.5, Epsilon: 1e-12}, []float32{0.875, 0.75}},
		{DenseConfig{Kind: "adamw", LearningRate: 0.125, Beta1: 0.5, Beta2: 0.5, Epsilon: 1e-12, WeightDecay: 0.5}, []float32{0.8125, 0.63671875}},
	} {
		p := param("w", []float32{1})
		d, err := NewDense(c.cfg, []*Param{p})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			p.Grad[0] = 2
			d.Step(int64(i+1), 1)
			if math.Abs(float64(p.Data[0]-want)) > 1e-6 {
				t.Errorf("%+v: step %d gives %v, want %v", c.cfg, i+1, p.Data[0], want)
			}
		}
	}
}

// TestDenseResumes: saved parameters, state and t give the same bits.
func TestDenseResumes(t *testing.T) {
	for name, cfg := range denseConfigs {
		t.Run(name, func(t *testing.T) {
			run := func(stop int) []float32 {
				p, q := param("a", []float32{0.5, -0.25, 0.1}), param("b", []float32{1})
				params := []*Param{p, q}
				d, err := NewDense(cfg, params)
				if err != nil {
					t.Fatal(err)
				}
				for step := 1; step <= 40; step++ {
					if step == stop {
						fresh := []*Param{param("a", append([]float32(nil), p.Data...)), param("b", append([]float32(nil), q.Data...))}
						e, err := NewDense(cfg, fresh)
						if err != nil {
							t.Fatal(err)
						}
						old := d.State()
						for i, st := range e.State() {
							if st.Name != old[i].Name {
								t.Fatalf("state %s became %s", old[i].Name, st.Name)
							}
							copy(st.Data, old[i].Data)
						}
						d, p, q = e, fresh[0], fresh[1]
					}
					for i := range p.Grad {
						p.Grad[i] = float32(math.Sin(float64(step*7 + i)))
					}
					q.Grad[0] = float32(math.Cos(float64(step)))
					d.Step(int64(step), 1/float32(step))
				}
				return append(p.Data, q.Data...)
			}
			whole, resumed := run(0), run(23)
			for i := range whole {
				if math.Float32bits(whole[i]) != math.Float32bits(resumed[i]) {
					t.Errorf("value %d: %v resumed, %v in one go", i, resumed[i], whole[i])
				}
			}
		})
	}
}

func TestStateNames(t *testing.T) {
	d, err := NewDense(denseConfigs["adam"], []*Param{param("w", []float32{1}), param("b", []float32{2})})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range d.State() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "w/exp_avg w/exp_avg_sq b/exp_avg b/exp_avg_sq" {
		t.Error(got)
	}
}

func TestNewDenseReportsEverything(t *testing.T) {
	bad := param("w", []float32{1})
	bad.Shape = []int{2, 3}
	_, err := NewDense(DenseConfig{Kind: "adam", LearningRate: math.NaN(), Beta1: 1, Beta2: -1, Epsilon: 1e-60}, []*Param{bad, param("x", nil), param("x", nil)})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"learning_rate NaN", "beta1 1", "beta2 -1", "epsilon 1e-60", "w of shape [2 3]", "two parameters are named x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if _, err := NewDense(DenseConfig{Kind: "rmsprop"}, nil); err == nil || !strings.Contains(err.Error(), "sgd, momentum") {
		t.Errorf("unknown kind: %v", err)
	}
}
