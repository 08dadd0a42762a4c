package cuda_test

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aibox/gpu/profiled"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
)

// layerOperations are those of one step of training on one device that read or write what layers compute, products excepted,
// by name, with their number.
func layerOperations(t *testing.T, s setup) string {
	t.Helper()
	b, times := newBench(t, s), new(profiled.Times)
	e, err := cuda.New(b.config, &b.state, cuda.Options{Platform: profiled.New(fusing(1, 5, s.seed), times), Devices: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	b.engine = e
	b.begin(t)
	b.train(t, 0, 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := times.Write(&out); err != nil {
		t.Fatal(err)
	}
	counts := map[string]string{}
	layers := regexp.MustCompile("^(activate_grad|epilogue|derive|column_sums|finish_columns|to_bf16)")
	for line := range strings.Lines(out.String()) {
		if c := strings.Split(line, "\t"); layers.MatchString(c[0]) {
			counts[c[0]] = c[2]
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, name+" "+counts[name])
	}
	return strings.Join(list, ", ")
}

// TestLayerOperations: a step reads and writes what layers compute no more often than it must. DLRM has four hidden
// layers that a product follows, and one, the last of the bottom network, that the interaction reads, too.
func TestLayerOperations(t *testing.T) {
	for _, c := range []struct {
		precision  engine.Precision
		activation string
		fuses      bool
		want       string
	}{
		// The gradient that the interaction passes down is no product, and that of the loss neither.
		{engine.Float32, "relu", false, "activate_grad 1, column_sums 2, derive 4, epilogue 6, finish_columns 6"},
		// The logits' weights are no product of bfloat16, so the last hidden layer remains float32. Rounded for themselves are
		// the other weights, at once, the dense features, the interactions, and the gradient from these.
		{engine.BF16, "relu", false, "activate_grad 1, column_sums 2, derive_bf16 1, derive_from_bf16 3, epilogue 3, epilogue_bf16 3, finish_columns 6, to_bf16 4"},
		// The derivative needs float32.
		{engine.BF16, "tanh", false, "activate_grad 1, column_sums 2, derive_bf16 4, epilogue 6, finish_columns 6, to_bf16 7"},
		// Products do all but what is no product, or has two readers.
		{engine.TF32, "relu", true, "activate_grad 1, column_sums 2, finish_columns 2"},
		{engine.TF32, "tanh", true, "activate_grad 1, column_sums 2, derive 4, epilogue 5, finish_columns 6"},
		// The gradient from the logits comes of a product of float32.
		{engine.BF16, "relu", true, "activate_grad 1, column_sums 2, column_sums_bf16 3, derive_bf16 1, finish_columns 6, to_bf16 4"},
	} {
		spec := model.Spec{
			Kind: model.KindDLRM, Fields: []string{"a", "b", "c", "d"}, Dense: []string{"x", "y", "z"}, Activation: c.activation,
			EmbeddingDim: 8, BottomLayers: []int{32, 16, 8}, HiddenLayers: []int{32, 16},
		}
		s := setup{spec: spec, dense: adam, admitted: true, batches: 1, examples: 300, precision: c.precision}
		if !c.fuses {
			s.seed = 1
		}
		if got := layerOperations(t, s); got != c.want {
			t.Errorf("%v, %s: %s\nwant %s", c.precision, c.activation, got, c.want)
		}
	}
}
