package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/terminal"
)

// childVariable makes the test binary behave like aibox. Tests of signals and of closed outputs
// need a process of their own.
const childVariable = "AIBOX_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		stopAtOperation()
		main() // exits
	}
	os.Exit(m.Run())
}

// These are the exit codes that README.md documents.
const (
	exitInternal    = 1
	exitUsage       = 2
	exitData        = 3
	exitIO          = 4
	exitJob         = 5
	exitLocked      = 6
	exitLostData    = 7
	exitDiverged    = 8
	exitInterrupted = 130
)

// outcome is the result of a command line.
type outcome struct {
	code           int
	stdout, stderr string
}

// aibox runs a command line in this process.
func aibox(args ...string) outcome {
	return aiboxContext(context.Background(), args...)
}

func aiboxContext(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	args = append([]string{"aibox"}, args...)
	code := run(ctx, args, &stdout, terminal.New(&stderr, cmdline.WantsJSON(args)))
	return outcome{code, stdout.String(), stderr.String()}
}

// ok runs a command line that must succeed, and returns its standard output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	o := aibox(args...)
	if o.code != exitDone {
		t.Fatalf("aibox %s: exit %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	return o.stdout
}

// smallJob is a job whose data come from the generator. Its files are in the current directory.
const smallJob = `name: small
data:
  train: [train.tsv]
  eval: [eval.tsv]
  format: tsv
model:
  kind: deepfm
  embedding_dim: 4
  hidden_layers: [8]
training:
  batch_size: 64
output:
  model_dir: model
generate:
  fields:
    - {name: user, cardinality: 500, skew: 1.1}
    - {name: ad, cardinality: 50, skew: 0.9, max_values: 3}
  dense_columns: 2
  train_examples: 2000
  eval_examples: 500
`

// inSmallJob changes to a new directory with job.yaml and its data.
func inSmallJob(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "job.yaml", smallJob)
	ok(t, "generate", "job.yaml")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantJSONLines fails unless every line of text is a JSON object.
func wantJSONLines(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("standard error has a line that is not JSON (%v): %q", err, line)
		}
	}
}

// wantOnly fails unless a directory has exactly these entries.
func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	if have := namesIn(t, dir); have != strings.Join(names, " ") {
		t.Errorf("%s holds %s, want %v", filepath.Base(dir), have, names)
	}
}
