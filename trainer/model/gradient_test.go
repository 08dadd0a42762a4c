package model

import (
	"math"
	"testing"
)

// TestGradients checks every parameter's and row's gradient of every model
// against central differences of the loss, of fourth order because batch
// normalization over six examples bends sharply.
//
// The network is computed in single precision: the loss's error is some 1e-7,
// so that a step of 2^-7 leaves an error of about 1e-5 in the quotient. Hence
// the tolerance. A kink of relu within the step spoils the quotient; a second,
// shorter step then decides.
func TestGradients(t *testing.T) {
	for name, spec := range Examples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := newRand(t, 11)
			m := mustNew(t, spec)
			perturb(rng, m)
			in := randomInputs(rng, spec, 6, 9)
			res, err := m.Train(in)
			if err != nil {
				t.Fatal(err)
			}
			type group struct {
				name string
				data []float32
				grad []float32
			}
			groups := []group{{"rows", in.Rows, append([]float32(nil), res.RowGrads...)}}
			for _, p := range m.Params() {
				groups = append(groups, group{p.Name, p.Data, append([]float32(nil), p.Grad...)})
			}
			loss := func() float64 {
				r, err := m.Train(in)
				if err != nil {
					t.Fatal(err)
				}
				return r.Loss
			}
			for _, g := range groups {
				var sum float64
				for i, v := range g.data {
					at := func(x float32) float64 {
						g.data[i] = x
						return loss()
					}
					difference := func(h float32) float64 {
						return (8*(at(v+h)-at(v-h)) - (at(v+2*h) - at(v-2*h))) / float64(12*h)
					}
					want := difference(1.0 / 128)
					if math.Abs(want-float64(g.grad[i])) > 2e-4+0.01*math.Abs(want) {
						want = difference(1.0 / 1024) // a kink nearby is less likely to be this near
					}
					g.data[i] = v
					sum += math.Abs(want)
					if d := math.Abs(want - float64(g.grad[i])); d > 4e-4+0.01*math.Abs(want) {
						t.Errorf("%s[%d]: gradient %g, differences say %g", g.name, i, g.grad[i], want)
					}
				}
				if sum == 0 {
					t.Errorf("%s: all differences are zero; the test says nothing", g.name)
				}
			}
		})
	}
}
