package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/testseed"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// killAfterSnapshots starts aibox as a process of its own, and kills it a while after it has logged
// that many times that a snapshot is saved. done reports that it ended before that.
func killAfterSnapshots(t *testing.T, n int, while time.Duration, args ...string) (done bool) {
	t.Helper()
	cmd, stderr := startWatched(t, append(args, "--log-format", "json")...)
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), `"snapshot saved"`) {
			continue
		}
		if n--; n == 0 {
			time.Sleep(while)
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	switch code := cmd.ProcessState.ExitCode(); code {
	case -1:
		return false
	case exitDone:
		return true
	default:
		t.Fatalf("exit %d\n%s", code, said.String())
		return false
	}
}

// TestKilledRunGoesOn repeatedly kills the program with SIGKILL. In the end the model must be that
// of a run without interruption, with the same metrics.
func TestKilledRunGoesOn(t *testing.T) {
	for _, kind := range []string{"memory", "ssd"} {
		t.Run(kind, func(t *testing.T) {
			inSmallJob(t)
			rng := testseed.Rand(t)
			args := []string{
				"train", "job.yaml", "--set", "training.epochs=3", "--set", "pipeline.batches_per_pass=2", "--set", "output.log_every=1",
				"--set", "sparse_table.kind=" + kind, "--set", "training.early_stopping.metric=log_loss", "--set", "snapshots.every=1 pass",
			}
			ok(t, append(args, "--set", "output.model_dir=left", "--set", "snapshots.every=none")...)
			kills, done := 0, false
			for !done && !isCommitted(t, "model", 0) {
				if done = killAfterSnapshots(t, 1+rng.IntN(12), time.Duration(rng.IntN(5000))*time.Microsecond, args...); !done {
					kills++
				}
			}
			s := wantSameAs(t, "left", "model")
			t.Logf("killed %d times; went on at %+v", kills, s.Resumed)
			// The last kill may have come after the commit.
			if kills > 1 && len(s.Resumed) == 0 || len(s.Resumed) > kills {
				t.Errorf("killed %d times; went on at %+v", kills, s.Resumed)
			}
			if done {
				wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000001", "metrics.jsonl", "quarantine.jsonl", "summary.json", "tensorboard")
			}
		})
	}
}

// isCommitted reports whether the model of dir is a newer generation than the given one (0: any).
func isCommitted(t *testing.T, dir string, generation int) bool {
	t.Helper()
	m, err := modeldir.Open(dir)
	if errors.Is(err, modeldir.ErrNoModel) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return m.Number() > generation
}

// wantSameAs fails unless the model in dir and its reports are the same as those in the directory
// of an undisturbed run. It returns the summary.
func wantSameAs(t *testing.T, left, dir string) *report.Summary {
	t.Helper()
	if have, want := ok(t, "inspect", "--digest", dir), ok(t, "inspect", "--digest", left); have != want {
		t.Errorf("digest %s, want %s", have, want)
	}
	// The process that has committed the model may have been killed before the reports were
	// in place.
	readReport := func(dir, name string) string {
		m, err := modeldir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return read(t, modeldir.ReportOf(dir, m.Generation, name))
	}
	for _, name := range []string{"metrics.jsonl", "quarantine.jsonl"} {
		have, want := strings.SplitAfter(readReport(dir, name), "\n"), strings.SplitAfter(readReport(left, name), "\n")
		i := 0
		for i < min(len(have), len(want)) && have[i] == want[i] {
			i++
		}
		if i < max(len(have), len(want)) {
			t.Errorf("%s has %d lines, and that of a run that was left alone %d; those from %d on differ:\n%s\nwant\n%s", name,
				len(have), len(want), i+1, strings.Join(have[i:min(i+1, len(have))], ""), strings.Join(want[i:min(i+1, len(want))], ""))
		}
	}
	if o := aibox("table", "verify", dir); o.code != exitDone || !strings.Contains(o.stdout, "no faults") {
		t.Errorf("the model's table: exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
	s := new(report.Summary)
	if err := json.Unmarshal([]byte(readReport(dir, "summary.json")), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFreshStartsOver checks that --fresh deletes what an interrupted run left.
func TestFreshStartsOver(t *testing.T) {
	inSmallJob(t)
	cmd, rest := startEndless(t, enoughTime...)
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if stderr := rest(); !strings.Contains(stderr, "with --fresh it starts over") {
		t.Fatalf("it is not said how to start over: %s", stderr[max(0, len(stderr)-500):])
	}
	wantExit(t, cmd, exitInterrupted)
	o := aibox("train", "job.yaml", "--fresh")
	var s report.Summary
	if err := json.Unmarshal([]byte(read(t, "model/summary.json")), &s); err != nil {
		t.Fatal(err)
	}
	if o.code != exitDone || len(s.Resumed) > 0 || !strings.Contains(o.stderr, "as --fresh says") {
		t.Errorf("exit %d, went on at %+v:\n%s", o.code, s.Resumed, o.stderr)
	}
}

// TestWaitingRunGoesOn checks that a run that waits for another one resumes that one when it is
// killed. A run that finds the directory locked must not log that it has deleted the snapshot
// there.
func TestWaitingRunGoesOn(t *testing.T) {
	inSmallJob(t)
	set := append([]string{"--set", "snapshots.every=1 pass"}, enoughTime...)
	first, rest := startEndless(t, set...)
	go rest() // so that it can always write
	for deadline := time.Now().Add(tooLong); ; time.Sleep(10 * time.Millisecond) {
		if found, err := filepath.Glob("model/gen-*/RESUME.json"); err != nil || len(found) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it takes no snapshot")
		}
	}
	if o := aibox("train", "job.yaml", "--set", "name=other"); o.code != exitLocked || strings.Contains(o.stderr, "is deleted") {
		t.Errorf("another job in the same directory: exit %d: %s", o.code, o.stderr)
	}
	second := child(t, append(append([]string{"train", "job.yaml", "--wait", "10h"}, endless...), set...)...)
	stderr, err := second.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(tooLong, func() { _ = second.Process.Kill() })
	defer watchdog.Stop()
	var said strings.Builder
	waited, goesOn := false, false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		switch {
		case !waited && strings.Contains(lines.Text(), "waiting until it ends"):
			waited = true
			_ = first.Process.Kill()
		case !goesOn && strings.Contains(lines.Text(), "training resumes from the snapshot"):
			goesOn = true
			_ = second.Process.Signal(unix.SIGTERM)
		}
	}
	wantExit(t, second, exitInterrupted)
	if !waited || !goesOn {
		t.Errorf("waited %v, went on %v:\n%s", waited, goesOn, said.String())
	}
}
