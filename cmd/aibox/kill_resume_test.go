package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killGoingOn repeatedly kills nights that start from the model of the night before, and lets the
// next process resume. In the end the model and the reports must be those of a night without
// interruption.
func killGoingOn(t *testing.T, b *binary) {
	for name, set := range map[string][]string{
		"two directories": {"sparse_table.dirs=[a, b]"},
		"memory":          {"sparse_table.kind=memory", "sparse_table.memory_bytes=1GiB"},
	} {
		t.Run(name, func(t *testing.T) { killNight(t, &binary{t, b.path}, set) })
	}
}

func killNight(t *testing.T, b *binary, set []string) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	withBadRows(t, "train.tsv")
	night := func(dir string, more ...string) (args []string) {
		args = []string{"train", "job.yaml"}
		for _, s := range append(append([]string{
			"output.model_dir=" + dir, "training.warm_start=latest", "training.epochs=3",
			"output.log_every=1", "data.max_bad_fraction=0.1",
		}, set...), more...) {
			args = append(args, "--set", s)
		}
		return args
	}
	const stopping = "training.early_stopping.metric=log_loss"
	for _, dir := range []string{"left", "model"} {
		if o := b.run(night(dir, "training.epochs=1")...); o.code != exitDone {
			t.Fatalf("exit %d\n%s", o.code, o.stderr)
		}
	}
	start := time.Now()
	if o := b.run(night("left", stopping, "snapshots.every=none")...); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	takes := time.Since(start) // decides only how far a process comes before it is killed
	n, rng := kills(t)
	for i := 0; i < n && !isCommitted(t, "model", 1); i++ {
		after := time.Duration(rng.Int64N(int64(takes)))
		log, ended := b.kill(after, night("model", stopping, "snapshots.every=1 pass")...)
		t.Logf("kill %d after %v: done %v, went on %v, %d snapshots", i, after, ended,
			strings.Contains(log, "training resumes from the snapshot"), strings.Count(log, "snapshot saved"))
		if strings.Contains(log, "starts over") {
			t.Errorf("it started over:\n%s", log)
		}
	}
	if !isCommitted(t, "model", 1) {
		if o := b.run(night("model", stopping, "snapshots.every=1 pass")...); o.code != exitDone {
			t.Fatalf("exit %d\n%s", o.code, o.stderr)
		}
	}
	s := wantSameAs(t, "left", "model")
	t.Logf("went on at %+v", s.Resumed)
	for _, dir := range []string{"a", "b"} {
		if tables, err := filepath.Glob(dir + "/model-gen-*"); err != nil || len(tables) > 2 {
			t.Errorf("%s holds %v, %v", dir, tables, err)
		}
	}
}

// withBadRows adds rows that cannot be read to a data file.
func withBadRows(t *testing.T, name string) {
	t.Helper()
	lines := strings.SplitAfter(read(t, name), "\n")
	var out strings.Builder
	for i, line := range lines {
		out.WriteString(line)
		if i%97 == 1 {
			fmt.Fprintf(&out, "bad row %d\n", i)
		}
	}
	if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
