package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/profiling"
)

// wantProfiles fails unless dir has complete profiles.
func wantProfiles(t *testing.T, dir string) {
	t.Helper()
	wantOnly(t, dir, profiling.Files...)
	for _, name := range profiling.Files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(data) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		if !strings.HasSuffix(name, ".pprof") {
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := io.ReadAll(z); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProfile checks that profiles do not change the model, and that a run that fails has them,
// too.
func TestProfile(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml", "--date", "2026-11-20")
	digest := ok(t, "inspect", "--digest", "model")
	ok(t, "train", "job.yaml", "--date", "2026-11-20", "--profile", "profiles/{{date}}", "--set", "output.model_dir=profiled")
	wantProfiles(t, "profiles/2026-11-20")
	if again := ok(t, "inspect", "--digest", "profiled"); again != digest {
		t.Errorf("digest %s with profiles, %s without", again, digest)
	}
	failing := []string{"train", "job.yaml", "--set", "data.train=[train.tsv,nosuch.tsv]", "--profile"}
	if o := aibox(append(failing, "failed")...); o.code != exitIO {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	wantProfiles(t, "failed")

	// Profiles of another run stay, and those of the next ones are beside them.
	before := read(t, "failed/cpu.pprof")
	for _, dir := range []string{"failed/2", "failed/3"} {
		if o := aibox("train", "job.yaml", "--profile", "failed", "--set", "output.model_dir=again"); o.code != exitDone || !strings.Contains(o.stderr, "now="+dir) {
			t.Errorf("exit %d: %s", o.code, o.stderr)
		}
		wantProfiles(t, dir)
	}
	if read(t, "failed/cpu.pprof") != before {
		t.Error("the profiles are touched")
	}
	if o := aibox("train", "job.yaml", "--profile", "job.yaml/x"); o.code != exitIO {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// TestProfileOfKilledRun checks that a job that was killed, which leaves incomplete profiles, can
// be resumed with the same command.
func TestProfileOfKilledRun(t *testing.T) {
	inSmallJob(t)
	until := func(said string) *exec.Cmd {
		t.Helper()
		cmd, stderr := startWatched(t, append([]string{"train", "job.yaml", "--profile", "profiles", "--set", "snapshots.every=1 pass"}, endless...)...)
		var log strings.Builder
		for lines := bufio.NewScanner(stderr); lines.Scan(); fmt.Fprintln(&log, lines.Text()) {
			if strings.Contains(lines.Text(), said) {
				go func() { _, _ = io.Copy(io.Discard, stderr) }()
				return cmd
			}
		}
		t.Fatalf("it does not say %q: %s", said, log.String())
		return nil
	}
	cmd := until("snapshot saved")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantExit(t, cmd, -1)
	left := namesIn(t, "profiles")
	cmd = until("training resumes from the snapshot")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	wantExit(t, cmd, exitInterrupted)
	wantProfiles(t, "profiles/2")
	if now := namesIn(t, "profiles"); now != "2 "+left {
		t.Errorf("the directory holds %s, and held %s", now, left)
	}
}

// TestProfileOfInterruptedRun checks that a job that a signal ends completes its profiles.
func TestProfileOfInterruptedRun(t *testing.T) {
	inSmallJob(t)
	cmd, rest := startEndless(t, "--profile", "profiles")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	stderr := rest()
	wantExit(t, cmd, exitInterrupted)
	wantJSONLines(t, stderr)
	wantProfiles(t, "profiles")
}
