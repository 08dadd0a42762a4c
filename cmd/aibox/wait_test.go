package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"aibox/internal/joblock"
	"aibox/trainer/modeldir"
)

// TestOneRunOfAJob checks that while a job is being trained, it is not trained a second time on the
// machine, whatever its date and wherever its paths point, and that other jobs are.
func TestOneRunOfAJob(t *testing.T) {
	inSmallJob(t)
	write(t, "nightly.yaml", nightlyJob)
	for _, c := range []struct{ file, name string }{{"job.yaml", "small"}, {"nightly.yaml", "nightly-{{date}}"}} {
		lock, err := joblock.Take(t.Context(), c.file, c.name, time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"", " --date 2026-11-20", " --set output.model_dir=elsewhere", " --set seed=2 --wait 1ms"} {
			o := aibox(strings.Fields("train " + c.file + more)...)
			if o.code != exitLocked || !strings.Contains(o.stderr, "another process is training this job") || !strings.Contains(o.stderr, "--wait") || !strings.Contains(o.stderr, "--set name=") {
				t.Errorf("train %s%s: exit %d: %s", c.file, more, o.code, o.stderr)
			}
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantOnly(t, ".", "eval.tsv", "job.yaml", "nightly.yaml", "train.tsv")

	lock, err := joblock.Take(t.Context(), "job.yaml", "small", time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, "train", "nightly.yaml", "--set", "output.model_dir=other", "--set", "training.warm_start=''")
	ok(t, "train", "job.yaml", "--set", "name=mine")
	ok(t, "eval", "--model-dir", "model", "--data", "eval.tsv") // reading is free
	// Who waits trains once the lock is free.
	waited := make(chan outcome)
	go func() { waited <- aibox("train", "job.yaml", "--wait", "2h", "--log-format", "json") }()
	time.Sleep(50 * time.Millisecond)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if o := <-waited; o.code != exitDone {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	// Ctrl-C ends waiting.
	if lock, err = joblock.Take(t.Context(), "job.yaml", "small", time.Time{}, nil); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if o := aiboxContext(ctx, "train", "job.yaml", "--wait", "2h"); o.code != exitInterrupted {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	for _, wait := range []string{"-1s", "x", "2"} {
		if o := aibox("train", "job.yaml", "--wait="+wait); o.code != exitUsage || !strings.Contains(o.stderr, "--wait") {
			t.Errorf("--wait=%s: exit %d: %s", wait, o.code, o.stderr)
		}
	}
}

// TestWaitForTheModelDirectory checks that a run waits for another one with the same model
// directory, and starts from the model that the other one has made.
func TestWaitForTheModelDirectory(t *testing.T) {
	inNightlyJob(t)
	w, err := modeldir.Create("model")
	if err != nil {
		t.Fatal(err)
	}
	if o := aibox("train", "job.yaml", "--date", "2026-11-21"); o.code != exitLocked || !strings.Contains(o.stderr, "--wait") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	waited := make(chan outcome)
	go func() { waited <- aibox("train", "job.yaml", "--date", "2026-11-21", "--wait", "2h") }()
	time.Sleep(50 * time.Millisecond)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if o := <-waited; o.code != exitDone {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if have := states(t)[0]; !strings.Contains(have, "published 2026-11-21 model@2") {
		t.Errorf("the newest is %s", have)
	}
}
