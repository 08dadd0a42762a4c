package inference_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
)

// TestEvaluationWorksFromTheDirectoryAlone compares eval and predict with what
// training measured.
func TestEvaluationWorksFromTheDirectoryAlone(t *testing.T) {
	j := testjobs.Job(t, "aibox", "model.batch_norm=true", "model.dropout=0.1", "data.negative_sampling=0.5", "optimizer.dense.averaging=0.9")
	s := train(t, j)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(j.Output.ModelDir, moved); err != nil {
		t.Fatal(err)
	}
	e, err := testjobs.Load(t, moved).Evaluate(t.Context(), j.Data.Eval)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e.Metrics, *s.Eval) {
		// NaN is not equal to itself; GroupAUC and the rest are defined here.
		t.Errorf("eval finds %+v, training found %+v", e.Metrics, *s.Eval)
	}
	if c := float64(e.Metrics.COPC); math.Abs(c-1) > 0.2 {
		t.Errorf("trained on half of the negatives, COPC is %.3f: not calibrated", c)
	}
	if s.TrainRows.Dropped < testjobs.TrainRows/4 {
		t.Errorf("%d negatives dropped", s.TrainRows.Dropped)
	}

	out := filepath.Join(t.TempDir(), "p.csv")
	p, err := testjobs.Load(t, moved).Predict(t.Context(), inference.PredictOptions{Data: j.Data.Eval, Output: out, Columns: []string{"item", "tags"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Examples != testjobs.EvalRows || math.Abs(p.Mean-float64(e.Metrics.MeanPrediction)) > 1e-6 {
		t.Errorf("predict: %+v; eval has mean %v", p, e.Metrics.MeanPrediction)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows[0], ","); got != "item,tags,label,prediction" || len(rows) != testjobs.EvalRows+1 {
		t.Fatalf("header %s, %d lines", got, len(rows))
	}
	loss := 0.0
	for _, r := range rows[1:] {
		q, err := strconv.ParseFloat(r[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		if r[2] == "0" {
			q = 1 - q
		}
		loss -= math.Log(q) / testjobs.EvalRows
	}
	if math.Abs(loss-float64(e.Metrics.LogLoss)) > 1e-5 {
		t.Errorf("log loss of the predictions %.6f, eval says %.6f", loss, float64(e.Metrics.LogLoss))
	}
}

// TestPredictNeedsFeaturesAlone: predictions need neither the weights of examples nor the column of groups.
func TestPredictNeedsFeaturesAlone(t *testing.T) {
	j := testjobs.Job(t, "fm", "data.columns[3]={name: D3, role: weight}", "data.columns[7]={name: region, role: ignore}", "data.group_by=region")
	train(t, j)
	dir := t.TempDir()
	var outputs []string
	for name, text := range map[string]string{
		"full": "label\tD1\tD2\tD3\tuser\titem\ttags\tregion\n1\t1\t2\t-3\t00000001\t\t\t00000002\n",
		"lean": "D1\tD2\tuser\titem\ttags\n1\t2\t00000001\t\t\n",
	} {
		in, out := filepath.Join(dir, name+".tsv"), filepath.Join(dir, name+".csv")
		if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: out}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		_, prediction, _ := strings.Cut(string(data), "\n")
		outputs = append(outputs, prediction[strings.Index(prediction, ","):])
	}
	if outputs[0] != outputs[1] {
		t.Errorf("predictions %q", outputs)
	}
}

// TestPredictSaysWhereALogitIsNotFinite checks that the error has the number of the mini-batch's
// first example, and says that such a row is no bad row.
func TestPredictSaysWhereALogitIsNotFinite(t *testing.T) {
	j := testjobs.Job(t, "dcn_v2", "data.columns[3]={name: D3, role: dense}", "training.accept_diverged=true")
	train(t, j)
	dir := t.TempDir()
	in := filepath.Join(dir, "in.tsv")
	text := "D1\tD2\tD3\tuser\titem\ttags\tregion\n" + strings.Repeat("1\t2\t3\t4\t5\t6\t7\n", 70) + "1\t2\t3e38\t4\t5\t6\t7\n"
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{false, true} {
		_, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: filepath.Join(dir, "p.csv"), KeepBadRows: keep})
		if errkind.Of(t.Context(), err) != errkind.Diverged || !strings.Contains(err.Error(), "mini-batch of the examples 65 to 71: ") || !strings.Contains(err.Error(), "logit of example 6 of the mini-batch") {
			t.Errorf("%v", err)
		}
		if strings.Contains(err.Error(), "--keep-bad-rows does not help, since this row could be read") != keep {
			t.Errorf("with --keep-bad-rows %t: %v", keep, err)
		}
	}
}

func TestPredictNeedsNoLabels(t *testing.T) {
	j := testjobs.Job(t, "fm")
	train(t, j)
	in := filepath.Join(t.TempDir(), "new.tsv")
	text := "D1\tD2\tD3\tuser\titem\ttags\tregion\n1\t2\t3\t00000001\t\t\t00000002\n\t\t\t\t\t\t\n"
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "p.tsv")
	p, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: out})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(data)), "\n"); p.Examples != 2 || len(lines) != 3 || !strings.HasPrefix(lines[1], "\t") {
		t.Errorf("%+v\n%s", p, data)
	}
	if _, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: "x.doc"}); errkind.Of(t.Context(), err) != errkind.Usage {
		t.Errorf("output of an unknown format: %v", err)
	}
}
