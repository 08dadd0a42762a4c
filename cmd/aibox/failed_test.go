package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"aibox/internal/disk"
	"aibox/trainer/report"
)

// TestFailedRuns checks that a run that makes no model shows the reason by its exit code, and by a
// summary beside the reports of the model that stays.
func TestFailedRuns(t *testing.T) {
	inSmallJob(t)
	write(t, "bad.tsv", strings.Repeat("x\ty\n", 2000))
	const failed = "model/summary-failed.json"
	for _, c := range []struct {
		args  string
		code  int
		kind  string
		phase report.Phase
		steps bool // some were made
	}{
		{"--set optimizer.dense.kind=sgd --set optimizer.dense.learning_rate=1000 --set optimizer.rows.kind=sgd --set optimizer.rows.learning_rate=1000 --set training.epochs=3", exitDiverged, "diverged", report.PhaseTraining, true},
		{"--set data.train=[bad.tsv] --set data.header=true", exitData, "data", report.PhaseStarting, false},
		{"--set data.train=[nosuch.tsv]", exitIO, "io", report.PhaseStarting, false},
		{"--set sparse_table.kind=ssd --set sparse_table.memory_bytes=1KiB", exitJob, "job_file", report.PhaseStarting, false},
	} {
		args := append([]string{"train", "job.yaml"}, strings.Fields(c.args)...)
		_ = os.RemoveAll("model")
		if o := aibox(args...); o.code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
		// A job that is refused for its job file leaves nothing where there was nothing.
		if disk.Exists(failed) == (c.code == exitJob) || disk.Exists("model/summary.json") {
			t.Errorf("%s: no summary, one that should not be, or one under the name of a model's", c.args)
		}
		// Beside a model.
		_ = os.RemoveAll("model")
		ok(t, "train", "job.yaml")
		before := read(t, "model/summary.json")
		o := aibox(args...)
		var s report.Summary
		if err := json.Unmarshal([]byte(read(t, failed)), &s); err != nil || s.Failure == nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		f := s.Failure
		if o.code != c.code || f.ExitCode != c.code || f.Kind != c.kind || f.Phase != c.phase || !strings.Contains(o.stderr, f.Message) || f.Time.IsZero() {
			t.Errorf("%s: exit %d, failure %+v: %s", c.args, o.code, f, o.stderr)
		}
		if s.Digest != "" || s.ModelKind != "deepfm" || s.Files["summary"] != failed || (s.Steps > 0) != c.steps || (s.Examples > 0) != c.steps {
			t.Errorf("%s: summary %+v", c.args, s)
		}
		if read(t, "model/summary.json") != before {
			t.Errorf("%s: the model's own summary is touched", c.args)
		}
		wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000001", "metrics.jsonl", "quarantine.jsonl", "summary-failed.json", "summary.json", "tensorboard")
		ok(t, "train", "job.yaml")
		wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000001", "gen-000002", "metrics.jsonl", "quarantine.jsonl", "summary.json", "tensorboard")
	}
}

// TestEvalWithoutExamples checks that evaluation data without any example are detected before
// training. An empty part beside others and a few bad rows are accepted.
func TestEvalWithoutExamples(t *testing.T) {
	inSmallJob(t)
	rows := strings.SplitAfter(read(t, "eval.tsv"), "\n")
	write(t, "head.tsv", rows[0])
	write(t, "garbage.tsv", rows[0]+"x\ty\n")
	for eval, code := range map[string]int{"head.tsv": exitData, "head.tsv, garbage.tsv": exitData, "head.tsv, garbage.tsv, eval.tsv": exitDone} {
		_ = os.RemoveAll("model")
		o := aibox("train", "job.yaml", "--set", "data.eval=["+eval+"]", "--set", "data.max_bad_rows=5")
		if o.code != code {
			t.Errorf("%s: exit %d: %s", eval, o.code, o.stderr)
		}
		if code == exitDone {
			continue
		}
		var s report.Summary
		if err := json.Unmarshal([]byte(read(t, "model/summary-failed.json")), &s); err != nil || s.Examples > 0 || s.Failure.Phase != report.PhaseStarting || !strings.Contains(s.Failure.Message, "data.eval: ") {
			t.Errorf("%s: %v, %d examples were trained: %+v", eval, err, s.Examples, s.Failure)
		}
	}
}

// TestAllMissingDataAreNamed checks that one error names all missing data, so that a user who has
// mistyped a directory finds all mistakes at once.
func TestAllMissingDataAreNamed(t *testing.T) {
	inSmallJob(t)
	o := aibox("train", "job.yaml", "--set", "data.train=[train.tsv,no-train,neither]", "--set", "data.eval=[no-eval]")
	for _, want := range []string{"data.train: ", "no-train", "neither", "data.eval: ", "no-eval"} {
		if o.code != exitIO || !strings.Contains(o.stderr, want) {
			t.Errorf("exit %d, want %q: %s", o.code, want, o.stderr)
		}
	}
}

// TestJobFaultMakesNoDirectory checks that a faulty job file makes no model directory, since the
// name of that directory may be the fault.
func TestJobFaultMakesNoDirectory(t *testing.T) {
	inSmallJob(t)
	o := aibox("train", "job.yaml", "--set", "output.model_dir=train.tsv/../eval.tsv")
	if o.code == 0 || disk.Exists("train.tsv/summary-failed.json") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if o := aibox("train", "job.yaml", "--set", "data.format=cvs"); o.code != exitUsage || disk.Exists("model") {
		t.Errorf("exit %d, a directory is made: %v: %s", o.code, disk.Exists("model"), o.stderr)
	}
}

// TestInterruptedRunHasASummary checks that a run that a signal ends writes a summary, too.
func TestInterruptedRunHasASummary(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	cmd, _ := startEndless(t)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wantExit(t, cmd, exitInterrupted)
	var s report.Summary
	if err := json.Unmarshal([]byte(read(t, "model/summary-failed.json")), &s); err != nil || s.Failure == nil {
		t.Fatal(err)
	}
	if s.Failure.Kind != "interrupted" || s.Failure.ExitCode != exitInterrupted {
		t.Errorf("%+v", s.Failure)
	}
}

// TestHiddenCells checks that with data.quarantine_rows: 0 the text of bad rows appears nowhere.
func TestHiddenCells(t *testing.T) {
	inSmallJob(t)
	const secret = "jane.doe@example.org"
	header, _, _ := strings.Cut(read(t, "train.tsv"), "\n")
	write(t, "bad.tsv", header+"\n"+strings.Repeat(strings.Repeat(secret+"\t", strings.Count(header, "\t"))+secret+"\n", 20))
	for rows, quoted := range map[string]bool{"10": true, "0": false} {
		o := aibox("train", "job.yaml", "--set", "data.train=[bad.tsv]", "--set", "data.quarantine_rows="+rows)
		if o.code != exitData {
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
		for what, text := range map[string]string{"the log": o.stderr, "the summary": read(t, "model/summary-failed.json")} {
			if strings.Contains(text, secret) != quoted {
				t.Errorf("quarantine_rows: %s: %s is %s", rows, what, text)
			}
		}
	}
}
