package inference_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
)

// TestOverridesOfTheNetwork: overrides under which the parameters of a model have the same sizes,
// but not the same meaning, are refused, and those that leave it as it is are not; a column that is
// read in another way causes a warning.
func TestOverridesOfTheNetwork(t *testing.T) {
	const (
		label = "{name: label, role: label}, "
		dense = "{name: D1, role: dense, transform: [log1p], group: a}, {name: D2, role: dense, transform: [log1p, standardize], group: a}, {name: D3, role: dense, transform: [log1p], group: b}, "
	)
	j := testjobs.Job(t, "deepfm", "data.limit=640", "model.dense_vectors=true")
	s := train(t, j)
	for set, want := range map[string]string{
		"seed=8":                                   "",
		"model.dropout=0.1":                        "",
		"model.pooling=mean":                       "pooling is not what it was trained with",
		"model.activation=tanh":                    "model.activation is not",
		"model.dense_vectors=false":                "the network has no dense_vectors",
		"sparse_table.admission.min_occurrences=2": "sparse_table.admission.min_occurrences is not",
		"data.columns=[" + label + dense + "{name: user}, {name: item}, {name: tags, separator: \"|\"}, {name: region}]":                       "",
		"data.columns=[{name: user}, {name: item}, {name: tags, separator: \"|\"}, " + dense + "{name: region}, " + label[:len(label)-2] + "]": "",
		"data.columns=[" + label + dense + "{name: item}, {name: user}, {name: tags, separator: \"|\"}, {name: region}]":                       "list the columns in the order",
		"data.columns[1].name=D3, data.columns[3].name=D1":                                                                                     "list the columns in the order",
		"data.columns[1].transform=[]": "WARN",
	} {
		sets := strings.Split(set, ", data")
		for i := range sets[1:] {
			sets[1+i] = "data" + sets[1+i]
		}
		if strings.HasPrefix(set, "data.columns=") {
			sets = []string{set}
		}
		var log bytes.Buffer
		opts := testjobs.Quiet
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		l, err := inference.Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{Set: sets}, opts)
		warned := strings.Contains(log.String(), "is read differently")
		switch {
		case want == "" || want == "WARN":
			if err != nil || warned != (want == "WARN") {
				t.Errorf("%s: %v; warned: %t", set, err, warned)
				continue
			}
			if ev, err := l.Evaluate(t.Context(), j.Data.Eval); err != nil || !warned && ev.Metrics.LogLoss != s.Eval.LogLoss {
				t.Errorf("%s: log loss %v, %v, want %v", set, ev.Metrics.LogLoss, err, s.Eval.LogLoss)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		case err == nil || !strings.Contains(err.Error(), want) || errkind.Of(t.Context(), err) != errkind.Usage:
			t.Errorf("%s: %v", set, err)
		}
	}
}

// TestFormatCannotBeOverridden: a table is read as what it is.
func TestFormatCannotBeOverridden(t *testing.T) {
	j := testjobs.Job(t, "fm", "sparse_table.value_format=bfloat16")
	train(t, j)
	_, err := inference.Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{Set: []string{"sparse_table.value_format=float32"}}, testjobs.Quiet)
	if errkind.Of(t.Context(), err) != errkind.Usage || !strings.Contains(err.Error(), "bfloat16") {
		t.Errorf("opened as float32: %v", err)
	}
}
