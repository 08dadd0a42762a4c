package main

import (
	"encoding/json"
	"testing"

	"aibox/trainer/inference"
)

// TestEvalOfAnotherFormat evaluates a model on data of another format than it was trained on, by
// overriding only data.format.
func TestEvalOfAnotherFormat(t *testing.T) {
	inSmallJob(t)
	ok(t, "convert", "--from", "train.tsv", "--to", "train.csv", "--job", "job.yaml")
	ok(t, "convert", "--from", "eval.tsv", "--to", "eval.csv", "--job", "job.yaml")
	ok(t, "convert", "--from", "eval.tsv", "--to", "eval.parquet", "--job", "job.yaml")
	ok(t, "train", "job.yaml", "--set", "data.format=csv", "--set", "data.train=[train.csv]", "--set", "data.eval=[eval.csv]")
	eval := func(args ...string) *inference.Evaluation {
		var e inference.Evaluation
		if err := json.Unmarshal([]byte(ok(t, append([]string{"eval", "--model-dir", "model", "--json"}, args...)...)), &e); err != nil {
			t.Fatal(err)
		}
		return &e
	}
	want := eval("--data", "eval.csv")
	for _, format := range []string{"tsv", "parquet"} {
		e := eval("--data", "eval."+format, "--set", "data.format="+format)
		if e.Metrics.Examples != 500 || e.Metrics.LogLoss != want.Metrics.LogLoss {
			t.Errorf("%s: %+v, want the metrics of CSV, %+v", format, e.Metrics, want.Metrics)
		}
		ok(t, "predict", "--model-dir", "model", "--data", "eval."+format, "--set", "data.format="+format, "--output", "scores-"+format+".csv")
	}
	if read(t, "scores-tsv.csv") != read(t, "scores-parquet.csv") {
		t.Error("the predictions of TSV and of Parquet differ")
	}
}
