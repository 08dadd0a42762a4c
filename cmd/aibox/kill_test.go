package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

const (
	// killBatches are the passes of an epoch of killJob, and its steps.
	killBatches = 12
	// killMaxDelay is as long as some epochs take.
	killMaxDelay = 1500 * time.Millisecond
)

// killJob is a job with a table that is a few times as large as its cache.
const killJob = `name: killed
data:
  train: [train.tsv]
  eval: [eval.tsv]
  format: tsv
model:
  kind: fm
  embedding_dim: 32
optimizer:
  rows: {kind: adagrad, learning_rate: 0.002}
training:
  batch_size: 500
  epochs: 1
pipeline:
  batches_per_pass: 1
sparse_table:
  kind: ssd
  memory_bytes: 6MiB
output:
  model_dir: model
generate:
  fields:
    - {name: user, cardinality: 100_000, skew: 0.3}
    - {name: ad, cardinality: 50_000, skew: 0.5}
  dense_columns: 2
  train_examples: 6000
  eval_examples: 1000
`

// untilKilled are the overrides of a job that takes a snapshot after each epoch that is better than
// all before. It runs for hours, so that it does not end before it is killed, however late that is.
// It starts from the beginning, in directories of its own.
var untilKilled = []string{"--fresh", "--set", "training.epochs=100000", "--set", "training.early_stopping.metric=log_loss",
	"--set", "training.early_stopping.patience=100000", "--log-format", "json"}

// binary is the program as "make build" builds it.
type binary struct {
	t    *testing.T
	path string
}

func buildBinary(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "aibox")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	return path
}

// run runs the program to its end.
func (b *binary) run(args ...string) outcome {
	b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(b.path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// kill runs the program for that long and kills it. ended reports that it ended before that.
func (b *binary) kill(after time.Duration, args ...string) (log string, ended bool) {
	b.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(b.path, args...)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill() // unless it has ended
	_ = cmd.Wait()
	switch code := cmd.ProcessState.ExitCode(); code {
	case -1:
	case exitDone:
		ended = true
	default:
		b.t.Fatalf("aibox %s: exit %d before it was killed\n%s", strings.Join(args, " "), code, stderr.String())
	}
	return stderr.String(), ended
}

// kills returns how often to kill the program, and the source of the random moments.
func kills(t *testing.T) (int, *rand.Rand) {
	t.Helper()
	n := tabletest.Kills(t, 5, 2)
	return n, testseed.Rand(t)
}

// inKillJob changes to a new directory with killJob, its data and a model that
// was trained for an epoch.
func inKillJob(t *testing.T, b *binary) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	if o := b.run("train", "job.yaml"); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
}

// epochDigests has the digests of killJob's table after each epoch of an undisturbed run, by the
// number of epochs.
type epochDigests map[int]string

func (e epochDigests) of(t *testing.T, epochs int) string {
	t.Helper()
	if d, ok := e[epochs]; ok {
		return d
	}
	ok(t, "train", "job.yaml", "--set", "sparse_table.kind=memory", "--set", "sparse_table.memory_bytes=1GiB",
		"--set", "output.model_dir=undisturbed", "--set", "output.keep_generations=1", "--set", fmt.Sprint("training.epochs=", epochs))
	tables, err := filepath.Glob("undisturbed/gen-*/table")
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	e[epochs] = digestOf(t, tables[0])
	return e[epochs]
}

// promisedEpoch returns the last epoch whose snapshot was certainly committed, according to a
// killed job's log: the next epoch ended, and the epoch was the best until then.
func promisedEpoch(t *testing.T, log string) int {
	t.Helper()
	promised, best, candidate := 0, "9", 0
	for line := range strings.Lines(log) {
		if !strings.HasSuffix(line, "\n") {
			break // killed within it
		}
		var v struct {
			Msg     string `json:"msg"`
			Epoch   int    `json:"epoch"`
			LogLoss string `json:"log_loss"` // digits of one length
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		switch {
		case v.Msg == "epoch trained":
			promised = candidate
		case v.Msg == "evaluated" && v.LogLoss < best:
			best, candidate = v.LogLoss, v.Epoch
		}
	}
	return promised
}

// These are the places of killJob's tables: in the model's directory, or in a and b.
var (
	inModel = []string{"model/gen-*/table"}
	inDirs  = []string{"a/model-gen-*", "b/model-gen-*"}
)

// tableDirs are the directories of the tables of killed jobs.
func tableDirs(t *testing.T, patterns ...string) (dirs []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			if !strings.Contains(dir, "gen-000001") { // that of the committed model
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// killedTable returns the directories of the table that a killed job was training, or none if it
// had not made one yet. Directories from before the job no longer count as a table: the job may
// have been killed while it deleted them. It deletes all of them before it makes its own.
func killedTable(t *testing.T, overDirs bool, before []string) []string {
	t.Helper()
	patterns := inModel
	if overDirs {
		patterns = inDirs
	}
	dirs := slices.DeleteFunc(tableDirs(t, patterns...), func(dir string) bool { return slices.Contains(before, dir) })
	if len(dirs) == 0 {
		return nil
	}
	left := slices.DeleteFunc(tableDirs(t, slices.Concat(inModel, inDirs)...), func(dir string) bool { return !slices.Contains(before, dir) })
	if len(left) > 0 || len(dirs) > len(patterns) {
		t.Fatalf("the runs before have left tables behind: %v beside %v", left, dirs)
	}
	if len(dirs) < len(patterns) {
		return nil
	}
	return dirs
}

// tableArgs returns the arguments that name a table by its directories.
func tableArgs(dirs []string) []string {
	args := []string{dirs[0], "--memory", "6MiB"}
	for _, dir := range dirs[1:] {
		args = append(args, "--dir", dir)
	}
	return args
}

// verified verifies a killed table with the program. It returns the number of snapshots, which is 0
// if there is none yet.
func (b *binary) verified(dirs []string) int {
	b.t.Helper()
	o := b.run(append([]string{"table", "verify", "--json"}, tableArgs(dirs)...)...)
	if o.code == exitIO && (strings.Contains(o.stderr, sparsetable.ErrNoSnapshot.Error()) || strings.Contains(o.stderr, tablecmd.ErrNoTable.Error())) {
		return 0
	}
	var v sparsetable.Verification
	if o.code != exitDone {
		b.t.Fatalf("verify %v: exit %d\n%s%s", dirs, o.code, o.stdout, o.stderr)
	}
	if err := json.Unmarshal([]byte(o.stdout), &v); err != nil {
		b.t.Fatal(err)
	}
	o = b.run(append([]string{"table", "stats", "--json"}, tableArgs(dirs)...)...)
	var r tablecmd.StatsReport
	if o.code != exitDone {
		b.t.Fatalf("stats %v: exit %d\n%s", dirs, o.code, o.stderr)
	}
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		b.t.Fatal(err)
	}
	if v.Faults > 0 || v.Snapshots == 0 || len(r.Snapshots) != v.Snapshots || r.Rows != r.Snapshots[v.Snapshots-1].Rows {
		b.t.Fatalf("%v: verify says %+v, stats %+v", dirs, v, r.Snapshots)
	}
	return v.Snapshots
}

// snapshotEpochs opens a killed table at each of its snapshots, and checks that each has the rows
// at the end of an epoch. It returns the newest of these epochs.
func snapshotEpochs(t *testing.T, dirs []string, want epochDigests, snapshots int) int {
	t.Helper()
	o := sparsetable.Options{Kind: sparsetable.KindSSD, Dir: dirs[0], ReadOnly: true, MemoryBytes: 16 << 20}
	o.SSD.Dirs = dirs
	newest := 0
	for i := range snapshots {
		tab, err := sparsetable.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		infos, err := tab.Snapshots()
		if err != nil || len(infos) != snapshots {
			t.Fatalf("%d snapshots, want %d: %v", len(infos), snapshots, err)
		}
		info := infos[len(infos)-1-i]
		if i > 0 {
			if err := tab.Close(); err != nil {
				t.Fatal(err)
			}
			o.SnapshotID = info.ID
			if tab, err = sparsetable.Open(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		var record struct{ Step int }
		if err := json.Unmarshal(info.Record, &record); err != nil || record.Step == 0 || record.Step%killBatches != 0 {
			t.Fatalf("a snapshot of step %d: %v", record.Step, err)
		}
		d, err := sparsetable.Digest(t.Context(), tab)
		if err != nil {
			t.Fatal(err)
		}
		epoch := record.Step / killBatches
		if have := fmt.Sprintf("%x", d); have != want.of(t, epoch) {
			t.Fatalf("the snapshot of epoch %d has digest %s, want %s", epoch, have, want.of(t, epoch))
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		newest = max(newest, epoch)
	}
	return newest
}

// TestKill kills the program itself, as it is built for users, with SIGKILL at random moments.
func TestKill(t *testing.T) {
	path := buildBinary(t)
	t.Run("training", func(t *testing.T) { killTraining(t, &binary{t, path}) })
	t.Run("going on", func(t *testing.T) { killGoingOn(t, &binary{t, path}) })
	t.Run("import", func(t *testing.T) { killImport(t, &binary{t, path}) })
}

// killTraining kills jobs that train a table on SSD. What they leave must be a table that can be
// opened, has no fault and has the committed snapshots. The earlier model must be unchanged, and
// the next job must start as if nothing had happened.
func killTraining(t *testing.T, b *binary) {
	inKillJob(t, b)
	n, rng := kills(t)
	model := ok(t, "inspect", "--digest", "model")
	want := epochDigests{}
	withSnapshot := 0
	for i := range n {
		overDirs := i%2 == 1
		args := append([]string{"train", "job.yaml"}, untilKilled...)
		if overDirs {
			args = append(args, "--set", "sparse_table.dirs=[a, b]")
		}
		before := tableDirs(t, slices.Concat(inModel, inDirs)...)
		after := time.Duration(rng.Int64N(int64(killMaxDelay)))
		log, ended := b.kill(after, args...)
		if ended {
			t.Fatalf("the job was done after %v\n%s", after, log)
		}
		promised, snapshots, newest := promisedEpoch(t, log), 0, 0
		if dirs := killedTable(t, overDirs, before); dirs != nil {
			snapshots = b.verified(dirs)
			newest = snapshotEpochs(t, dirs, want, snapshots)
		}
		t.Logf("kill %d after %v: %d snapshots, the newest of epoch %d, promised %d", i, after, snapshots, newest, promised)
		if newest < promised {
			t.Fatalf("the newest snapshot is of epoch %d, that of epoch %d was committed", newest, promised)
		}
		if snapshots > 0 {
			withSnapshot++
		}
		if o := b.run("table", "verify", "model"); o.code != exitDone || !strings.Contains(o.stdout, "no faults") {
			t.Fatalf("the model's table: exit %d: %s%s", o.code, o.stdout, o.stderr)
		}
		if have := ok(t, "inspect", "--digest", "model"); have != model {
			t.Fatalf("the model has digest %s, want %s", have, model)
		}
	}
	t.Logf("%d of %d left a snapshot", withSnapshot, n)
	if o := b.run("train", "job.yaml", "--set", "sparse_table.dirs=[a, b]"); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	if have := ok(t, "inspect", "--digest", "model"); have != model {
		t.Errorf("trained again, the model has digest %s, want %s", have, model)
	}
	for _, dir := range []string{"a", "b"} {
		if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) != 1 {
			t.Errorf("%s holds %v, %v", dir, left, err)
		}
	}
}

// killImport kills imports into a table that has rows, and its compaction. The table must have the
// rows of the import before or of this one, and the next import must work.
func killImport(t *testing.T, b *binary) {
	inKillJob(t, b)
	n, rng := kills(t)
	want := epochDigests{}
	files := map[string]string{} // by the digest of their rows
	for epochs := 1; epochs <= 2; epochs++ {
		files[want.of(t, epochs)] = fmt.Sprint(epochs, ".parquet")
		ok(t, "table", "export", "undisturbed", "--to", fmt.Sprint(epochs, ".parquet"))
	}
	dirs := []string{"x/a", "x/b"}
	importing := func(file string) []string {
		return append([]string{"table", "import", "--from", file}, tableArgs(dirs)...)
	}
	before, changed := want.of(t, 1), 0
	start := time.Now()
	if o := b.run(importing("1.parquet")...); o.code != exitDone {
		t.Fatalf("exit %d\n%s", o.code, o.stderr)
	}
	takes := time.Since(start)
	for i := range n {
		var file string
		for digest, f := range files {
			if digest != before {
				file = f
			}
		}
		after := time.Duration(rng.Int64N(int64(takes)))
		_, ended := b.kill(after, importing(file)...)
		if b.verified(dirs) == 0 {
			t.Fatal("there was a snapshot, there is none")
		}
		now := digestOf(t, dirs[0], dirs[1:]...)
		t.Logf("kill %d after %v: done %v, new rows %v", i, after, ended, now != before)
		if files[now] == "" || ended && files[now] != file {
			t.Fatalf("the table has the rows of %q, wanted were those of %s", files[now], file)
		}
		if now != before {
			changed++
		}
		before = now
		b.kill(time.Duration(rng.Int64N(int64(takes))), append([]string{"table", "compact", "--drop-older"}, tableArgs(dirs)...)...)
		if b.verified(dirs) == 0 {
			t.Fatal("compaction has dropped the newest snapshot")
		}
		if now := digestOf(t, dirs[0], dirs[1:]...); now != before {
			t.Fatalf("a killed compaction has changed the table to %q", files[now])
		}
	}
	t.Logf("%d of %d imports were committed", changed, n)
}
