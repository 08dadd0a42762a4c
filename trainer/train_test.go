package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// TestLearnsTheKnownModel holds trained models against the true probabilities.
func TestLearnsTheKnownModel(t *testing.T) {
	for kind, atLeast := range map[string]float64{"lr": 0.61, "deepfm": 0.61} {
		s := train(t, job(t, kind, "training.epochs=2"))
		if got := float64(s.Eval.AUC); !(got > atLeast) {
			t.Errorf("%s: AUC %.4f on held-out data, want more than %.2f", kind, got, atLeast)
		}
		if ne := float64(s.Eval.NormalizedEntropy); !(ne < 1) {
			t.Errorf("%s: normalized entropy %.4f: no better than the base rate", kind, ne)
		}
		if s.TrainRows.Good != testjobs.TrainRows || s.EvalRows.Good != testjobs.EvalRows || s.TrainRows.Bad != 0 {
			t.Errorf("%s: counts %+v and %+v", kind, s.TrainRows, s.EvalRows)
		}
	}
}

// TestEarlyStoppingKeepsTheBestEpoch overfits on purpose and compares the model
// kept with one trained for just so many epochs.
func TestEarlyStoppingKeepsTheBestEpoch(t *testing.T) {
	overfit := []string{averaging, "optimizer.rows.learning_rate=0.5", "model.hidden_layers=[64, 32]", "training.accept_diverged=true"}
	j := job(t, "deepfm", append(overfit, "training.epochs=8", "training.early_stopping={metric: log_loss, patience: 2}")...)
	s := train(t, j)
	if s.KeptEpoch == len(s.Epochs) || len(s.Epochs) == 8 {
		t.Fatalf("kept epoch %d of %d: the job does not overfit, the test tests nothing", s.KeptEpoch, len(s.Epochs))
	}
	if len(s.Epochs) != s.KeptEpoch+2 {
		t.Errorf("%d epochs trained with patience 2 and the best one %d", len(s.Epochs), s.KeptEpoch)
	}
	best := train(t, job(t, "deepfm", append(overfit, "training.epochs="+strconv.Itoa(s.KeptEpoch))...))
	if best.Digest != s.Digest {
		t.Errorf("model kept %s, model of %d epochs %s", s.Digest, s.KeptEpoch, best.Digest)
	}
	if e, err := load(t, j.Output.ModelDir).Evaluate(t.Context(), j.Data.Eval); err != nil || e.Metrics.LogLoss != s.Eval.LogLoss {
		t.Errorf("log loss of the directory's model %v (%v), of the epoch kept %v", e.Metrics.LogLoss, err, s.Eval.LogLoss)
	}
}

// TestInterruptionLeavesTheEarlierModel cancels in the middle of training. Without
// snapshots, nothing else is left.
func TestInterruptionLeavesTheEarlierModel(t *testing.T) {
	j := job(t, "lr", "snapshots.every=none")
	before := train(t, j).Digest
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	status := new(report.Status)
	go func() {
		for status.View().Step < 5 {
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
	}()
	j.Training.Epochs = 10000
	if _, err := Train(ctx, j, Options{Logger: quiet.Logger, Status: status}); !errors.Is(err, cause) {
		t.Fatalf("cancelled: %v", err)
	}
	in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, inference.Options{})
	if err != nil || in.Digest != before {
		t.Errorf("model afterwards: %v, %v, want %s", in, err, before)
	}
	left, err := filepath.Glob(filepath.Join(j.Output.ModelDir, "gen-*"))
	if err != nil || len(left) != 1 {
		t.Errorf("generations left: %v", left)
	}
	j.Training.Epochs = 1
	if again := train(t, j).Digest; again != before {
		t.Errorf("trained again after the interruption: %s, want %s", again, before)
	}
}

func TestBadRowsStopTheJobAndAreQuarantined(t *testing.T) {
	dir := t.TempDir()
	j := job(t, "lr", "data.max_bad_fraction=0.001", "data.max_bad_rows=-1", "data.shuffle_buffer=0")
	good, err := os.ReadFile(j.Data.Train[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(good), "\n")
	for i := 500; i < len(lines); i += 100 {
		lines[i] = strings.Replace(lines[i], "\t", "\tx", 1) // a number that is none
	}
	path := filepath.Join(dir, "bad.tsv")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	j.Data.Train = []string{path}
	_, err = Train(t.Context(), j, quiet)
	var bad *reader.BadRowsError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), path) {
		t.Fatalf("want a BadRowsError that names %s, got %v", path, err)
	}
	if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
		t.Errorf("a model was committed: %v", err)
	}

	// Each reason is logged once, not again by the scan or in later epochs.
	var log bytes.Buffer
	again := job(t, "lr", "data.max_bad_fraction=0.5", "training.epochs=3")
	again.Data.Train, again.Data.Eval = j.Data.Train, j.Data.Train
	if _, err := Train(t.Context(), again, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(log.String(), "bad row\""); got != 2 {
		t.Errorf("bad rows are logged %d times, want once of data.train and once of data.eval:\n%s", got, log.String())
	}

	j.Data.MaxBadFraction = 0.5
	s := train(t, j)
	want := int64(len(lines)-1-500)/100 + 1
	if s.TrainRows.Bad != want || s.TrainRows.Good != int64(len(lines)-2)-want {
		t.Errorf("counted %+v, want %d bad of %d", s.TrainRows, want, len(lines)-2)
	}
	if info, err := os.Stat(s.Files["quarantine"]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the quarantine file has the mode %v, %v", info.Mode(), err)
	}
	data, err := os.ReadFile(s.Files["quarantine"])
	if err != nil {
		t.Fatal(err)
	}
	quarantined := strings.Split(strings.TrimSpace(string(data)), "\n")
	var row reader.BadRow
	if err := json.Unmarshal([]byte(quarantined[0]), &row); err != nil || int64(len(quarantined)) != want || row.URI != path || row.Line != 501 {
		t.Errorf("%d rows quarantined, the first is %+v (%v)", len(quarantined), row, err)
	}
}

func TestDivergenceIsAnErrorNotAModel(t *testing.T) {
	j := job(t, "deepfm", "optimizer.dense.kind=sgd", "optimizer.dense.learning_rate=1000", "optimizer.rows.kind=sgd", "optimizer.rows.learning_rate=1000")
	_, err := Train(t.Context(), j, quiet)
	if err == nil || !strings.Contains(err.Error(), "learning rate") {
		t.Errorf("want advice about the learning rate, got %v", err)
	}
	if _, err := modeldir.Open(j.Output.ModelDir); !errors.Is(err, modeldir.ErrNoModel) {
		t.Errorf("a model was committed: %v", err)
	}
}

func TestWrongDataShowsBeforeTraining(t *testing.T) {
	j := job(t, "lr")
	j.Data.Eval = []string{filepath.Join(t.TempDir(), "nothing.tsv")}
	status := new(report.Status)
	if _, err := Train(t.Context(), j, Options{Logger: quiet.Logger, Status: status}); err == nil || !strings.Contains(err.Error(), "data.eval") {
		t.Errorf("missing evaluation data: %v", err)
	}
	if v := status.View(); v.Step != 0 {
		t.Errorf("%d steps were trained first", v.Step)
	}
}

func TestBudgetIsNamed(t *testing.T) {
	j := job(t, "fm", "sparse_table.memory_bytes=64KiB")
	_, err := Train(t.Context(), j, quiet)
	if !errors.Is(err, sparsetable.ErrBudget) {
		t.Errorf("want ErrBudget, got %v", err)
	}
}

// TestRowStatistics checks show, click, count, last-seen and admission against
// a plain count over the log.
func TestRowStatistics(t *testing.T) {
	j := job(t, "lr", "data.limit=200", "sparse_table.admission.min_occurrences=4", "data.shuffle_buffer=0")
	train(t, j)
	text, err := os.ReadFile(j.Data.Train[0])
	if err != nil {
		t.Fatal(err)
	}
	type seen struct{ show, click float32 }
	want := make(map[uint64]*seen)
	lines := strings.Split(string(text), "\n")[1:201]
	for _, l := range lines {
		cells := strings.Split(l, "\t")
		for i, field := range []string{"user", "item", "tags", "region"} {
			for v := range strings.SplitSeq(cells[4+i], "|") {
				if v == "" {
					continue
				}
				k := reader.Key(field, []byte(v))
				if want[k] == nil {
					want[k] = new(seen)
				}
				want[k].show++
				if cells[0] == "1" {
					want[k].click++
				}
			}
		}
	}
	l := load(t, j.Output.ModelDir)
	layout := l.Table.Layout()
	rows := 0
	err = l.Table.Scan(t.Context(), func(key uint64, row []float32) error {
		rows++
		st := layout.Stats(row)
		w := want[key]
		if w == nil {
			t.Errorf("row of a key that is not in the log: %x", key)
			return nil
		}
		if st.Show != w.show || st.Click != w.click || st.Count != uint32(w.show) || st.LastSeen != 1 {
			t.Errorf("statistics %+v, want %+v", st, *w)
		}
		if trained := layout.State(row)[0] != float32(j.Optimizer.Rows.InitialAccumulator); trained != (w.show >= 4) {
			t.Errorf("a row with %g occurrences was trained: %v", w.show, trained)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}

// TestFailedRunLeavesReports: metrics and bad rows of the model that stays are
// not overwritten by a run that makes none.
func TestFailedRunLeavesReports(t *testing.T) {
	j := job(t, "lr")
	s := train(t, j)
	files := []string{s.Files["summary"], s.Files["metrics"], s.Files["quarantine"]}
	read := func() (all string) {
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		return all
	}
	before := read()
	bad := filepath.Join(t.TempDir(), "bad.tsv")
	header, err := os.ReadFile(j.Data.Eval[0])
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(header), "\n")
	if err := os.WriteFile(bad, []byte(line+"\nx\ty\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j.Data.Train = []string{bad}
	if _, err := Train(t.Context(), j, quiet); err == nil {
		t.Fatal("a file of bad rows trained a model")
	}
	if read() != before {
		t.Error("the failed run changed the reports of the model that stays")
	}
	data, err := os.ReadFile(filepath.Join(j.Output.ModelDir, failedQuarantineName))
	if err != nil || !strings.Contains(string(data), bad) {
		t.Errorf("bad rows of the failed run: %s, %v", data, err)
	}
}
