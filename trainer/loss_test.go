package trainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// TestCutDataEndTheJob checks that a truncated file ends training, whether it is training or
// evaluation data, and also aibox eval. The summary says what is lost.
func TestCutDataEndTheJob(t *testing.T) {
	whole := func(size int) int { return size }
	half := func(size int) int { return size / 2 }
	j := job(t, "lr")
	good := testjobs.Gzip(t, j.Data.Train[0], whole)
	cut := testjobs.Gzip(t, j.Data.Train[0], half)
	j.Data.Train, j.Data.Eval = []string{good}, []string{good}
	train(t, j)
	l, err := inference.Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{}, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for what, run := range map[string]func() error{
		"data.train": func() error {
			k := *j
			k.Data.Train = []string{cut}
			_, err := Train(t.Context(), &k, quiet)
			return err
		},
		"data.eval": func() error {
			k := *j
			k.Data.Eval = []string{cut}
			_, err := Train(t.Context(), &k, quiet)
			return err
		},
		"eval": func() error { _, err := l.Evaluate(t.Context(), []string{cut}); return err },
	} {
		var lost *reader.LostDataError
		if err := run(); !errors.As(err, &lost) || !strings.Contains(err.Error(), cut) {
			t.Errorf("%s: %v", what, err)
		}
	}

	k := *j
	k.Data.Train, k.Data.MaxLostFraction, k.Training.Epochs = []string{cut}, 1, 2
	s := train(t, &k)
	if len(s.TrainRows.Lost) != 1 || s.TrainRows.Lost[0].URI != cut || s.TrainRows.LostRows < 1 || len(s.EvalRows.Lost) != 0 {
		t.Errorf("%+v", s.TrainRows)
	}
	data, err := os.ReadFile(s.Files["summary"])
	if err != nil {
		t.Fatal(err)
	}
	var saved report.Summary
	if err := json.Unmarshal(data, &saved); err != nil || len(saved.TrainRows.Lost) != 1 || saved.TrainRows.Lost[0] != s.TrainRows.Lost[0] {
		t.Errorf("%+v (%v)", saved.TrainRows, err)
	}
	if data, err = os.ReadFile(s.Files["quarantine"]); err != nil || bytes.Count(data, []byte("\n")) != 1 || !bytes.Contains(data, []byte(cut)) {
		t.Errorf("in quarantine is %s (%v)", data, err)
	}
}
