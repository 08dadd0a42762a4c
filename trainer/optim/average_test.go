package optim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAverage: averages are those of their definition, for every kind of optimizer, and change
// nothing of the updates.
func TestAverage(t *testing.T) {
	const averaging = 0.75
	for name, cfg := range denseConfigs {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			start := make([]float32, 67) // whole vectors and a rest
			for i := range start {
				start[i] = rng.Float32() - 0.5
			}
			plain, averaged, other := param("w", slices.Clone(start)), param("w", slices.Clone(start)), param("v", []float32{1, 2})
			alone, err := NewDense(cfg, []*Param{plain})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Averaging = averaging
			d, err := NewDense(cfg, []*Param{other, averaged}, Own{"v", RowConfig{Kind: "sgd", LearningRate: 0.5}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Average(averaged), start) {
				t.Errorf("before the first step, the average is %v", d.Average(averaged))
			}
			want, wantOther := make([]float64, len(start)), 0.0
			for step := int64(1); step <= 20; step++ {
				for i := range start {
					plain.Grad[i] = float32(rng.NormFloat64())
				}
				copy(averaged.Grad, plain.Grad)
				other.Grad[1] = 1 - 2*rng.Float32()
				alone.Step(step, 1)
				d.Step(step, 1)
				// The plain mean up to the fourth step, in which old values keep 3/4.
				share := max(0.25, 1/float64(step))
				for i, w := range plain.Data {
					want[i] = (1-share)*want[i] + share*float64(w)
				}
				wantOther = (1-share)*wantOther + share*float64(other.Data[1])
			}
			if !slices.Equal(averaged.Data, plain.Data) {
				t.Error("averages change the updates")
			}
			for i, a := range d.Average(averaged) {
				if !close32(a, want[i]) {
					t.Errorf("average %d is %v, want %v", i, a, want[i])
				}
			}
			if a := d.Average(other)[1]; !close32(a, wantOther) {
				t.Errorf("the average of a parameter with an optimizer of its own is %v, want %v", a, wantOther)
			}
			if s := d.Unaveraged(); len(s) != 2 || s[1].Name != "w/unaveraged" || !slices.Equal(s[1].Data, plain.Data) {
				t.Errorf("unaveraged: %v", s)
			}
			average := slices.Clone(d.Average(averaged))
			if d.SwapAverages(); !slices.Equal(averaged.Data, average) {
				t.Error("a network would not be run with the averages")
			}
			if d.SwapAverages(); !slices.Equal(averaged.Data, plain.Data) || !slices.Equal(d.Average(averaged), average) {
				t.Error("training would not go on where it was")
			}
		})
	}
}

// TestWithoutAverages: without them, models have the parameters.
func TestWithoutAverages(t *testing.T) {
	p := param("w", []float32{1, 2})
	d, err := NewDense(denseConfigs["adam"], []*Param{p})
	if err != nil {
		t.Fatal(err)
	}
	if d.SwapAverages(); &d.Average(p)[0] != &p.Data[0] || d.Unaveraged() != nil {
		t.Error("there are averages")
	}
	for _, averaging := range []float64{-0.1, 1, 2} {
		if _, err := NewDense(DenseConfig{Kind: "sgd", LearningRate: 1, Averaging: averaging}, nil); err == nil {
			t.Errorf("averaging %v: no error", averaging)
		}
	}
}
