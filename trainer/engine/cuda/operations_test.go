package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aibox/gpu/profiled"
	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
)

// operations are those of one step of training on one device, by name, without copies to and from
// the host and fills: how many there are, and the bytes that they read and write.
func operations(t *testing.T, s setup) (counts map[string]int, megabytes float64) {
	t.Helper()
	b, times := newBench(t, s), new(profiled.Times)
	e := b.open(t, profiled.New(fusing(1, 5, s.seed), times), devices(1))
	b.begin(t)
	*times = profiled.Times{} // without the rounding of parameters that come from the host
	b.train(t, 0, 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := times.Write(&out); err != nil {
		t.Fatal(err)
	}
	counts = map[string]int{}
	for line := range strings.Lines(out.String()) {
		c := strings.Split(line, "\t")
		if len(c) != 8 || c[0] == "operation" || strings.HasPrefix(c[0], "copy ") || c[0] == "fill" {
			continue
		}
		calls, err := strconv.Atoi(c[2])
		mb, err2 := strconv.ParseFloat(c[6], 64)
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		counts[c[0]], megabytes = calls, megabytes+mb
	}
	return counts, megabytes
}

// benchSpec is the DLRM of bench/speed.
func benchSpec() model.Spec {
	spec := model.Spec{Kind: model.KindDLRM, Fields: make([]string, 26), Dense: make([]string, 13), EmbeddingDim: 16, BottomLayers: []int{512, 256, 64, 16}, HiddenLayers: []int{512, 256}}
	for i := range spec.Fields {
		spec.Fields[i] = fmt.Sprint("C", i)
	}
	for i := range spec.Dense {
		spec.Dense[i] = fmt.Sprint("I", i)
	}
	return spec
}

// TestOperations: a step of the DLRM of bench/speed has few operations. The log says what they read
// and write.
func TestOperations(t *testing.T) {
	spec := benchSpec()
	const examples = 2048
	for _, c := range []struct {
		precision engine.Precision
		fuses     bool
		most      int
	}{{engine.TF32, true, 34}, {engine.TF32, false, 40}, {engine.BF16, true, 34}, {engine.BF16, false, 40}} {
		s := setup{spec: spec, dense: optim.DenseConfig{Kind: "sgd", LearningRate: 0.1}, admitted: true, batches: 1, examples: examples, precision: c.precision}
		if !c.fuses {
			s.seed = 1
		}
		counts, megabytes := operations(t, s)
		all := 0
		for name, n := range counts {
			all += n
			// What enters the top network has 367 columns, which products of other precisions than
			// float32 take for 368.
			if strings.Contains(name, "=367") {
				t.Errorf("%v: a product is not padded: %s", c.precision, name)
			}
		}
		t.Logf("%v, with products that do layers: %v: %d operations, %.1f KB for each of %d examples", c.precision, c.fuses, all, megabytes*1e3/examples, examples)
		if all > c.most {
			t.Errorf("%v, fuses %v: %d operations, want %d: %v", c.precision, c.fuses, all, c.most, counts)
		}
	}
}

// layerOperations are those that read or write what layers compute, products excepted, with their number.
func layerOperations(t *testing.T, s setup) string {
	t.Helper()
	counts, _ := operations(t, s)
	layers := regexp.MustCompile("^(activate_grad|epilogue|derive|output|column_sums|finish_columns|to_bf16)")
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if layers.MatchString(name) {
			list = append(list, fmt.Sprint(name, " ", counts[name]))
		}
	}
	return strings.Join(list, ", ")
}

// TestLayerOperations checks that a step reads and writes the values of layers no more often than
// necessary. DLRM has four hidden layers whose output only a product reads, and one, the last of
// the bottom network, whose output the interaction reads, too.
func TestLayerOperations(t *testing.T) {
	for _, c := range []struct {
		precision  engine.Precision
		activation string
		fuses      bool
		want       string
	}{
		// The gradient that the interaction passes down, the derivative of its first vector with
		// it, is no product, and that of the loss neither.
		{engine.Float32, "relu", false, "column_sums 2, derive 3, epilogue 5, finish_columns 2, output_layer 1, output_sums 1"},
		// The logits' weights are no product of bfloat16, so the last hidden layer remains float32.
		// Rounded for themselves are the dense features, and what is beside the interactions; the
		// other weights are by their updates.
		{engine.BF16, "relu", false, "column_sums 2, derive_from_bf16 3, epilogue 2, epilogue_bf16 3, finish_columns 2, output_layer_bf16 1, output_sums 1, to_bf16 2"},
		// The derivative needs float32.
		{engine.BF16, "tanh", false, "column_sums 2, derive_bf16 3, epilogue 5, finish_columns 2, output_layer_bf16 1, output_sums 1, to_bf16 5"},
		// Products do all of the forward pass.
		{engine.TF32, "relu", true, "column_sums 2, derive 3, finish_columns 2, output_layer 1, output_sums 1"},
		{engine.TF32, "tanh", true, "column_sums 2, derive 3, epilogue 5, finish_columns 2, output_layer 1, output_sums 1"},
		{engine.BF16, "relu", true, "column_sums 2, derive_from_bf16 3, finish_columns 2, output_layer_bf16 1, output_sums 1, to_bf16 2"},
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
