package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
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

// TestProfile: profiles do not change the model, and a run that fails has them, too.
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

	// Profiles of another run stay, and no job is begun.
	before := read(t, "failed/cpu.pprof")
	if o := aibox("train", "job.yaml", "--profile", "failed", "--set", "output.model_dir=none"); o.code != exitUsage || !strings.Contains(o.stderr, "holds profiles of another run") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if exists("none") || read(t, "failed/cpu.pprof") != before {
		t.Error("a job was begun, or the profiles are touched")
	}
	if o := aibox("train", "job.yaml", "--profile", "job.yaml/x"); o.code != exitIO {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// TestProfileOfInterruptedRun: a signal ends the job, which completes its profiles.
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
