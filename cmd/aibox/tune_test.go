package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/joblock"
	"aibox/internal/tune"
)

// tuneJob is a job that learns badly, since its learning rates are far too large.
const tuneJob = `name: tuned
data:
  train: [train.tsv]
  eval: [eval.tsv] # is not read by tune
  format: tsv
model: {kind: fm, embedding_dim: 4}
optimizer:
  rows: {kind: adagrad, learning_rate: 0.8} # too large
  dense: {kind: adam, learning_rate: 0.08}
training: {batch_size: 100}
sparse_table:
  kind: ssd
  memory_bytes: 6MiB
  dirs: [ssd]
output: {model_dir: model, metrics: metrics.jsonl}
generate:
  fields:
    - {name: user, cardinality: 500, skew: 0.9}
    - {name: ad, cardinality: 50, skew: 0.9}
  dense_columns: 2
  train_examples: 6000
  eval_examples: 100
`

func inTuneJob(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", tuneJob)
	ok(t, "generate", "job.yaml")
	if err := os.Remove("eval.tsv"); err != nil {
		t.Fatal(err)
	}
}

// tuneArgs are the arguments of a quick search.
var tuneArgs = []string{"tune", "job.yaml", "--trials", "8", "--over", "learning_rates,epochs", "--epochs", "2"}

// TestTune searches, trains with the file that the search writes, and starts a new search.
func TestTune(t *testing.T) {
	inTuneJob(t)
	text := ok(t, tuneArgs...)
	if !strings.Contains(text, "original job\n") || !strings.Contains(text, "job-tuned.yaml has the best settings.\n") {
		t.Error(text)
	}
	tuned := read(t, "job-tuned.yaml")
	if !strings.Contains(tuned, "eval: [eval.tsv] # is not read by tune\n") || strings.Contains(tuned, "model-tune") {
		t.Errorf("the file is not the job file with other settings:\n%s", tuned)
	}
	wantOnly(t, ".", "job-tuned.yaml", "job.yaml", "model-tune", "ssd", "train.tsv")
	wantOnly(t, "model-tune", tune.JournalName)
	wantOnly(t, "ssd")

	// The best trial is better than the job as it was, and what it says is what training with
	// the file achieves.
	var found struct {
		Set     []string
		Results []tune.Result
	}
	again := append(tuneArgs[:len(tuneArgs):len(tuneArgs)], "--json", "--output", "again.yaml")
	if err := json.Unmarshal([]byte(ok(t, again...)), &found); err != nil {
		t.Fatal(err)
	}
	best := found.Results[0]
	for _, r := range found.Results {
		if r.Trial == 0 && best.LogLoss > r.LogLoss-0.01 || r.Failure == "" && r.HeldOut != 600 {
			t.Errorf("best %+v, as it is %+v", best, r)
		}
	}
	if read(t, "again.yaml") != tuned {
		t.Errorf("the same search has written another file:\n%s", read(t, "again.yaml"))
	}
	ok(t, "train", "job-tuned.yaml", "--set", "data.eval=[]", "--set", "data.validation_fraction=0.1")
	var summary struct {
		Validation struct {
			LogLoss float64 `json:"log_loss"`
		}
	}
	if err := json.Unmarshal([]byte(read(t, "model/summary.json")), &summary); err != nil || summary.Validation.LogLoss != best.LogLoss {
		t.Errorf("%v: log loss %v, and %v in the search", err, summary.Validation.LogLoss, best.LogLoss)
	}

	// A search that differs does not go on with this one.
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "job-tuned.yaml exists"},
		{"--output job.yaml", exitUsage, "job.yaml exists"},
		{"--output x.yaml --seed 2", exitUsage, "its seed was 1 and is 2 now; use --fresh to begin a new search"},
		{"--output x.yaml --set model.embedding_dim=2", exitUsage, "its job file (hash) was"},
		{"--output nowhere/x.yaml", exitIO, "nowhere"},
		{"--output x.yaml --trials 1", exitUsage, "--trials 1: want a number from 2"},
		{"--output x.yaml --over rates", exitUsage, "--over rates: want a list of learning_rates"},
		{"--output x.yaml --metric loss", exitUsage, "--metric loss: want log_loss or auc"},
		{"--output x.yaml --examples 0", exitUsage, "--examples 0"},
		{"--output x.yaml --validation-fraction 0.7", exitUsage, "--validation-fraction 0.7"},
		{"--output x.yaml --validation-fraction 0", exitUsage, "--validation-fraction 0: want a share above 0"},
		{"--output x.yaml --dir train.tsv", exitIO, "train.tsv"},
	} {
		if o := aibox(append(tuneArgs[:len(tuneArgs):len(tuneArgs)], strings.Fields(c.args)...)...); o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("aibox tune job.yaml %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
	}
	fresh := ok(t, append(tuneArgs[:len(tuneArgs):len(tuneArgs)], "--fresh", "--seed", "2", "--output", "x.yaml")...)
	if fresh == text {
		t.Error("another seed gives the same table")
	}
}

// Settings from --set are written into the file. If the best settings cannot be written, the error
// has them. The metric may be AUC.
func TestTuneOverrides(t *testing.T) {
	inTuneJob(t)
	ok(t, "tune", "job.yaml", "--trials", "3", "--metric", "auc", "--examples", "3000", "--set", "training.batch_size=50", "--output", "x.yaml")
	job, err := configs.Load("x.yaml", configs.LoadOptions{})
	if err != nil || job.Training.BatchSize != 50 || job.Data.Limit != 0 {
		t.Errorf("%v\n%s", err, read(t, "x.yaml"))
	}
	write(t, "alias.yaml", strings.Replace(strings.Replace(tuneJob, "0.8}", "&rate 0.8}", 1), "0.08}", "*rate}", 1))
	o := aibox("tune", "alias.yaml", "--trials", "6", "--over", "learning_rates", "--dir", "d")
	if o.code != exitJob || !strings.Contains(o.stderr, "give them on the command line: --set 'optimizer.") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
}

// TestTuneFindsNothingBetter checks that if the job's own settings are the best ones, tune does not
// say that the file that it writes has better ones.
func TestTuneFindsNothingBetter(t *testing.T) {
	inTuneJob(t)
	write(t, "job.yaml", strings.NewReplacer("0.8}", "0.05}", "0.08}", "0.001}").Replace(tuneJob))
	text := ok(t, "tune", "job.yaml", "--trials", "2", "--over", "learning_rates", "--set", "training.batch_size=50")
	if !strings.Contains(text, "No other settings were better") || !strings.HasSuffix(text, "job-tuned.yaml has the settings of the original job.\n") {
		t.Error(text)
	}
	text = ok(t, "tune", "job.yaml", "--trials", "2", "--over", "epochs", "--set", "training.epochs=3", "--epochs", "1", "--output", "x.yaml", "--dir", "d")
	if !strings.Contains(text, "No other settings were better") || !strings.HasSuffix(text, "x.yaml has the settings of the original job, except for training.epochs=1.\n") {
		t.Error(text)
	}
}

// TestTuneKilled kills the program at seeded moments until the search is done. It must find the
// same as a search without interruptions.
func TestTuneKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: builds the program; not in short mode")
	}
	b := &binary{t: t, path: buildBinary(t)}
	inTuneJob(t)
	ok(t, append(tuneArgs[:len(tuneArgs):len(tuneArgs)], "--dir", "other", "--output", "want.yaml")...)
	n, rng := kills(t)
	for range n {
		if _, ended := b.kill(time.Duration(rng.Int64N(int64(time.Second))), tuneArgs...); ended || disk.Exists("job-tuned.yaml") {
			break
		}
	}
	if !disk.Exists("job-tuned.yaml") {
		if o := b.run(tuneArgs...); o.code != exitDone {
			t.Fatalf("exit %d\n%s", o.code, o.stderr)
		}
	}
	if got, want := read(t, "job-tuned.yaml"), read(t, "want.yaml"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	seconds := regexp.MustCompile(`"seconds":[^,}]*`)
	journal := func(dir string) string {
		return seconds.ReplaceAllString(read(t, filepath.Join(dir, tune.JournalName)), "")
	}
	if got, want := journal("model-tune"), journal("other"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	wantOnly(t, "model-tune", tune.JournalName)
	wantOnly(t, "ssd")
}

// TestOneSearchOfAJob checks that a second search ends at once, and that its message does not
// suggest a flag that it does not have.
func TestOneSearchOfAJob(t *testing.T) {
	inTuneJob(t)
	lock, err := joblock.Take(t.Context(), "job.yaml", "tuned (tune)", time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	o := aibox(tuneArgs...)
	if o.code != exitLocked || !strings.Contains(o.stderr, "that process is searching for settings (aibox tune); wait until it ends") || strings.Contains(o.stderr, "--wait") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
