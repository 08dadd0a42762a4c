package trainer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/report"
)

// gzipFile compresses a file and cuts the end off.
func gzipFile(t *testing.T, from string, keep func(size int) int) string {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "part.gz")
	if err := os.WriteFile(path, b.Bytes()[:keep(b.Len())], 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCutDataEndTheJob: a file that lacks its end ends training, whether it is
// trained on or evaluated, and eval. What is lost is in the summary.
func TestCutDataEndTheJob(t *testing.T) {
	whole := func(size int) int { return size }
	half := func(size int) int { return size / 2 }
	j := job(t, "lr")
	good := gzipFile(t, j.Data.Train[0], whole)
	cut := gzipFile(t, j.Data.Train[0], half)
	j.Data.Train, j.Data.Eval = []string{good}, []string{good}
	train(t, j)
	l, err := Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{}, quiet)
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
