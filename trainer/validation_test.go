package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// cutLog writes the first n lines of the plain part of the log, and the others, and returns
// both files.
func cutLog(t *testing.T, n int) (head, tail string) {
	t.Helper()
	j := job(t, "fm", "data.train=[LOG/train-0.tsv]")
	data, err := os.ReadFile(j.Data.Train[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	dir := t.TempDir()
	header, lines := lines[0], lines[1:]
	for i, part := range [][]string{lines[:n], lines[n:]} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(header+strings.Join(part, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "0"), filepath.Join(dir, "1")
}

// TestValidationFraction: a model that holds out the end of its data is the one that is
// trained on the rest alone, and is measured as on data of their own.
func TestValidationFraction(t *testing.T) {
	head, tail := cutLog(t, 1200) // of 1,500
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"in order", []string{"data.shuffle_buffer=0"}},
		{"shuffled, sampled", []string{"data.shuffle_buffer=300", "data.negative_sampling=0.5", "training.epochs=2"}},
		{"early stopping", []string{"training.epochs=4", "training.early_stopping.patience=1", "optimizer.rows.learning_rate=2", "training.accept_diverged=true"}},
		{"on SSD", onSSD("training.epochs=2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			apart := job(t, "fm", append(c.set, "data.train=["+head+"]", "data.eval=["+tail+"]")...)
			want := train(t, apart)
			together := job(t, "fm", append(c.set, "data.train=[LOG/train-0.tsv]", "data.eval=[]", "data.validation_fraction=0.2")...)
			got := train(t, together)
			if a, b := testjobs.Digest(t, apart), testjobs.Digest(t, together); a != b {
				t.Errorf("digest %s, want %s", b, a)
			}
			if got.Eval != nil || got.Validation == nil || fmt.Sprintf("%+v", *got.Validation) != fmt.Sprintf("%+v", *want.Eval) || got.KeptEpoch != want.KeptEpoch {
				t.Errorf("epoch %d: %+v, want epoch %d: %+v", got.KeptEpoch, got.Validation, want.KeptEpoch, want.Eval)
			}
			if got.TrainRows.Good != want.TrainRows.Good || got.ValidationRows.Good != want.EvalRows.Good || got.ValidationRows.Good != 300 {
				t.Errorf("rows %+v and %+v, want %+v and %+v", got.TrainRows, got.ValidationRows, want.TrainRows, want.EvalRows)
			}
			metrics, err := os.ReadFile(report.Paths(together)["metrics"])
			if err != nil || strings.Count(string(metrics), `"kind":"validation"`) != len(got.Epochs) {
				t.Errorf("%v: %s", err, metrics)
			}
		})
	}
}

// TestValidationChooses: early stopping goes by what is held out, and data.eval are only
// reported.
func TestValidationChooses(t *testing.T) {
	set := []string{"data.train=[LOG/train-0.tsv]", "data.validation_fraction=0.2", "training.epochs=4", "training.early_stopping.patience=1", "optimizer.rows.learning_rate=2", "training.accept_diverged=true"}
	alone := train(t, job(t, "fm", append(set, "data.eval=[]")...))
	both := train(t, job(t, "fm", set...))
	if both.KeptEpoch != alone.KeptEpoch || len(both.Epochs) != len(alone.Epochs) || both.Digest != alone.Digest || both.Eval == nil || both.Validation == nil {
		t.Errorf("epoch %d of %d with data.eval, epoch %d of %d without", both.KeptEpoch, len(both.Epochs), alone.KeptEpoch, len(alone.Epochs))
	}
}

// TestValidationOfTooLittle: a share that leaves nothing is an error of the job.
func TestValidationOfTooLittle(t *testing.T) {
	j := job(t, "fm", "data.limit=3", "data.validation_fraction=0.1")
	_, err := Train(t.Context(), j, quiet)
	if err == nil || !strings.Contains(err.Error(), "data.train have 3 examples") || errkind.Of(t.Context(), err) != errkind.Job {
		t.Errorf("%v", err)
	}
}
