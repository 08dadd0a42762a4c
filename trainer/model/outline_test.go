package model

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"aibox/trainer/optim"
)

// TestOutline: an outline has the parameters of the model, with their shapes, the names of their
// axes and the programs, and no values.
func TestOutline(t *testing.T) {
	for name, spec := range Examples() {
		m, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Outline(spec)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range m.Params() {
			q := o.Params()[i]
			if q.Name != p.Name || !slices.Equal(q.Shape, p.Shape) || q.Size() != len(p.Data) || !reflect.DeepEqual(o.Axes(p.Name), m.Axes(p.Name)) {
				t.Errorf("%s: parameter %+v, want %s of shape %v", name, q, p.Name, p.Shape)
			}
			if q.Data != nil || q.Grad != nil {
				t.Errorf("%s: %s has values", name, q.Name)
			}
		}
		if !reflect.DeepEqual(o.Network().Train, m.Network().Train) || !reflect.DeepEqual(o.Network().Infer, m.Network().Infer) {
			t.Errorf("%s: the outline has other programs", name)
		}
		cfg := optim.DenseConfig{Kind: "adam", LearningRate: 0.1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Averaging: 0.9}
		d, err := optim.NewDense(cfg, o.Params())
		if err != nil {
			t.Fatal(err)
		}
		whole, err := optim.NewDense(cfg, m.Params())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(d.Updates(1, 1)), fmt.Sprint(whole.Updates(1, 1)); got != want || !d.Averages() || len(d.Slots(0)) != 2 {
			t.Errorf("%s: updates %s, want %s", name, got, want)
		}
	}
}

// TestOutlineOfLargeNetworks: what no memory would suffice for has an outline, and parameters that
// no machine could hold are an error.
func TestOutlineOfLargeNetworks(t *testing.T) {
	spec := Spec{Kind: KindWideDeep, Fields: []string{"a"}, EmbeddingDim: 4, HiddenLayers: slices.Repeat([]int{65536}, 16)}
	m, err := Outline(spec)
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, p := range m.Params() {
		values += p.Size()
	}
	if values < 15<<32 {
		t.Errorf("%d values", values)
	}
	spec = Spec{Kind: KindDCNv2, EmbeddingDim: 4096, CrossLayers: 1}
	for i := range 260 {
		spec.Fields = append(spec.Fields, fmt.Sprint(i))
	}
	for _, f := range []func(Spec) (*Model, error){New, Outline} {
		if _, err := f(spec); err == nil || !strings.Contains(err.Error(), "cross/0/weight of shape [1064960 1064960] has more than") {
			t.Errorf("a matrix of 1,064,960 squared: %v", err)
		}
	}
}
