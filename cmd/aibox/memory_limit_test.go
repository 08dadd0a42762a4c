package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// limitedGroup makes a control group with that much memory, and returns the file that moves
// processes into it. The test is skipped if the system does not allow that.
func limitedGroup(t *testing.T, bytes int64) (procs string) {
	t.Helper()
	for root, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		dir, err := os.MkdirTemp(root, "aibox-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		limit := filepath.Join(dir, file)
		if _, err := os.Stat(limit); err == nil && os.WriteFile(limit, fmt.Appendln(nil, bytes), 0) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("control groups that limit memory cannot be made here")
	return ""
}

// inGroup returns a command that runs a program in a control group, with the arguments that are
// appended.
func inGroup(procs, program string) []string {
	return []string{"sh", "-c", fmt.Sprintf(`echo $$ >%s && exec "$0" "$@"`, procs), program}
}

// TestMemoryLimit trains in a control group with less memory than the job takes otherwise. The job
// must collect garbage more often, look fewer passes ahead, warn at its beginning that it may need
// more memory, and make the same model.
func TestMemoryLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("trains two models over 300,000 rows")
	}
	path := inMemoryJob(t)
	train := func(dir string, command ...string) (stderr string) {
		var text strings.Builder
		cmd := exec.Command(command[0], append(command[1:], "train", "job.yaml", "--log-format", "json", "--set", "output.model_dir="+dir,
			"--set", "training={epochs: 3, accept_diverged: true}", "--set", "pipeline={read_ahead_bytes: 64MiB}")...)
		cmd.Stderr = &text
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v:\n%s", command, err, text.String())
		}
		return text.String()
	}
	const (
		limitBytes = 96 << 20 // with all of the machine's memory the job takes 115 to 150 MiB; with 78 MiB Linux kills some of its runs
		warning    = "the job may need"
	)
	limited := train("limited", inGroup(limitedGroup(t, limitBytes), path)...)
	if !strings.Contains(limited, warning) || !strings.Contains(limited, "lower sparse_table.memory_bytes") {
		t.Errorf("with %d bytes of memory:\n%s", limitBytes, limited)
	}
	if free := train("free", path); strings.Contains(free, warning) {
		t.Errorf("with all of the memory of the machine:\n%s", free)
	}
	if a, b := ok(t, "inspect", "--digest", "free"), ok(t, "inspect", "--digest", "limited"); a != b {
		t.Errorf("the digest is %s, and %s with less memory", a, b)
	}
}

// TestMemoryIsExhausted checks that a table in memory that outgrows its control group ends the job
// with an error that says what to do, before Linux kills the process, and that a model that does
// not fit is not read.
func TestMemoryIsExhausted(t *testing.T) {
	if testing.Short() {
		t.Skip("trains two models over 300,000 rows")
	}
	path := inMemoryJob(t)
	train := []string{"train", "job.yaml", "--set", "sparse_table={kind: memory}", "--set", "model.embedding_dim=64"} // 56 MiB of rows
	ok(t, train...)
	for _, c := range []struct {
		limitBytes int64
		args       []string
	}{
		{70 << 20, append(train, "--set", "output.model_dir=other")},
		{50 << 20, []string{"eval", "--model-dir", "model", "--data", "eval.tsv"}},
	} {
		sh := inGroup(limitedGroup(t, c.limitBytes), path)
		b := &binary{t, sh[0]}
		o := b.run(append(sh[1:], c.args...)...)
		if o.code != exitJob || !strings.Contains(o.stderr, "memory is exhausted") || !strings.Contains(o.stderr, "Set sparse_table.kind: ssd") {
			t.Errorf("%s exits with %d:\n%s", c.args[0], o.code, o.stderr)
		}
	}
}

// TestTableOnSSDMakesDo checks that a table on SSD whose sparse_table.memory_bytes is far more than
// the control group has works with the memory that there is, and makes the same model. If a
// mini-batch does not fit that memory, the job ends with an error.
func TestTableOnSSDMakesDo(t *testing.T) {
	if testing.Short() {
		t.Skip("trains three models over 300,000 rows")
	}
	path := inMemoryJob(t)
	train := []string{"train", "job.yaml", "--set", "sparse_table.memory_bytes=256MiB", "--set", "model.embedding_dim=128"} // 125 MiB of rows
	run := func(limitBytes int64, args ...string) outcome {
		sh := inGroup(limitedGroup(t, limitBytes), path)
		return (&binary{t, sh[0]}).run(append(sh[1:], append(train, args...)...)...)
	}
	o := run(110<<20, "--set", "output.model_dir=limited")
	if o.code != 0 || !strings.Contains(o.stderr, "the cache of its table stays smaller") || !strings.Contains(o.stderr, "cannot get all the memory of the table's budget") {
		t.Fatalf("it exits with %d:\n%s", o.code, o.stderr)
	}
	ok(t, train...)
	if a, b := ok(t, "inspect", "--digest", "model"), ok(t, "inspect", "--digest", "limited"); a != b {
		t.Errorf("the digest is %s, and %s with less memory", a, b)
	}
	o = run(80<<20, "--set", "output.model_dir=tiny", "--set", "training.batch_size=30000")
	if o.code != exitJob || !strings.Contains(o.stderr, "a mini-batch with") || !strings.Contains(o.stderr, "memory is exhausted") && !strings.Contains(o.stderr, "bytes are unavailable") || !strings.Contains(o.stderr, "Make more memory available to aibox") {
		t.Errorf("with mini-batches that do not fit it exits with %d:\n%s", o.code, o.stderr)
	}
}
