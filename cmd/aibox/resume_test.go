package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aibox/internal/testseed"
	"aibox/trainer"
)

// killAfterSnapshots starts aibox as a process of its own, and kills it a while after it
// has said so many times that a snapshot is saved. done reports that it came to its end
// before that.
func killAfterSnapshots(t *testing.T, n int, while time.Duration, args ...string) (done bool) {
	t.Helper()
	cmd := child(t, append(args, "--log-format", "json")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(tooLong, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
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

// TestKilledRunGoesOn kills the program with SIGKILL, again and again. In the end there is
// the model of a run that was left alone, with the same metrics.
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
			kills := 0
			for !killAfterSnapshots(t, 1+rng.IntN(12), time.Duration(rng.IntN(5000))*time.Microsecond, args...) {
				kills++
			}
			var s trainer.Summary
			if err := json.Unmarshal([]byte(read(t, "model/summary.json")), &s); err != nil {
				t.Fatal(err)
			}
			t.Logf("killed %d times; went on at %+v", kills, s.Resumed)
			if kills > 0 && len(s.Resumed) == 0 || len(s.Resumed) > kills {
				t.Errorf("killed %d times; went on at %+v", kills, s.Resumed)
			}
			if have, want := ok(t, "inspect", "--digest", "model"), ok(t, "inspect", "--digest", "left"); have != want {
				t.Errorf("digest %s, want %s", have, want)
			}
			if read(t, "model/metrics.jsonl") != read(t, "left/metrics.jsonl") || read(t, "model/quarantine.jsonl") != read(t, "left/quarantine.jsonl") {
				t.Error("the reports differ from those of a run that was left alone")
			}
			if o := aibox("table", "verify", "model"); o.code != exitDone || !strings.Contains(o.stdout, "no faults") {
				t.Errorf("the model's table: exit %d: %s%s", o.code, o.stdout, o.stderr)
			}
			wantOnly(t, "model", "LOCK", "MODEL.json", "gen-000001", "metrics.jsonl", "quarantine.jsonl", "summary.json", "tensorboard")
		})
	}
}

// TestFreshStartsOver: --fresh deletes what an interrupted run left.
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
	var s trainer.Summary
	if err := json.Unmarshal([]byte(read(t, "model/summary.json")), &s); err != nil {
		t.Fatal(err)
	}
	if o.code != exitDone || len(s.Resumed) > 0 || !strings.Contains(o.stderr, "as --fresh says") {
		t.Errorf("exit %d, went on at %+v:\n%s", o.code, s.Resumed, o.stderr)
	}
}
