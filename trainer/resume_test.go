package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/report"
)

// errCrash ends a run whose process is said to have been killed.
var errCrash = errors.New("crash")

// crash copies what a run has on disk, as a crash at that instant would leave it, and
// puts it back after the run has ended.
type crash struct {
	t    *testing.T
	dirs []string
	kept string
}

func newCrash(t *testing.T, j *configs.Job) *crash {
	return &crash{t: t, dirs: append([]string{j.Output.ModelDir}, j.SparseTable.Dirs...)}
}

// now copies the directories, the first time that it is called.
func (c *crash) now() {
	if c.kept != "" {
		return
	}
	for c.kept == "" {
		kept := c.t.TempDir()
		before := c.resume()
		for i, dir := range c.dirs {
			copyTree(c.t, dir, filepath.Join(kept, string(rune('a'+i))))
		}
		if c.resume() == before { // else, files of the one before may have been dropped meanwhile
			c.kept = kept
		}
	}
}

// resume is RESUME.json, "" if there is none.
func (c *crash) resume() (text string) {
	files, _ := filepath.Glob(filepath.Join(c.dirs[0], "gen-*", "RESUME.json"))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		text += string(data)
	}
	return text
}

// happened puts the copies into place.
func (c *crash) happened() {
	c.t.Helper()
	if c.kept == "" {
		c.t.Fatal("there was no crash")
	}
	for i, dir := range c.dirs {
		if err := errors.Join(os.RemoveAll(dir), os.Rename(filepath.Join(c.kept, string(rune('a'+i))), dir)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// copyTree copies a directory in which files may appear and vanish.
func copyTree(t *testing.T, from, to string) {
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(filepath.Join(to, rel), data, 0o644))
	})
	if err != nil {
		t.Error(err)
	}
}

// outcomeOf are the model and the reports of a run, in which nothing may show that it was
// interrupted.
type outcomeOf struct {
	digest, metrics, quarantine string
	kept                        int
	examples                    int64
	train, eval                 string
	epochs                      string
}

func outcome(t *testing.T, j *configs.Job, s *report.Summary) outcomeOf {
	t.Helper()
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	epochs := slices.Clone(s.Epochs)
	for i := range epochs {
		epochs[i].Seconds, epochs[i].CPU, epochs[i].Stages = 0, 0, nil
	}
	return outcomeOf{
		testjobs.Digest(t, j), reportOfModel(t, j, report.MetricsName), reportOfModel(t, j, report.QuarantineName), s.KeptEpoch, s.Examples, text(s.TrainRows), text(s.EvalRows), text(epochs),
	}
}

// reportOfModel is a report of the model of a job, in its generation: a process that dies when
// it has committed the model may not have put it into place.
func reportOfModel(t *testing.T, j *configs.Job, name string) string {
	t.Helper()
	m, err := modeldir.Open(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	data, err := os.ReadFile(modeldir.ReportOf(j.Output.ModelDir, m.Generation, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compare fails where two outcomes differ.
func (o *outcomeOf) compare(t *testing.T, want *outcomeOf) {
	t.Helper()
	if *o == *want {
		return
	}
	if o.digest != want.digest || o.kept != want.kept || o.examples != want.examples {
		t.Errorf("digest %s of epoch %d after %d examples, want %s of %d after %d", o.digest, o.kept, o.examples, want.digest, want.kept, want.examples)
	}
	for name, texts := range map[string][2]string{
		"metrics": {o.metrics, want.metrics}, "quarantine": {o.quarantine, want.quarantine}, "train_rows": {o.train, want.train}, "eval_rows": {o.eval, want.eval}, "epochs": {o.epochs, want.epochs},
	} {
		if texts[0] != texts[1] {
			have, want := strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")
			i := 0
			for i < min(len(have), len(want))-1 && have[i] == want[i] {
				i++
			}
			t.Errorf("%s have %d lines, want %d; line %d is\n%s\nwant\n%s", name, len(have), len(want), i+1, have[i], want[i])
		}
	}
}

// everyPass has a snapshot taken after each pass, and uploaded where they are.
const everyPass = "snapshots={every: 1 pass, remote_every: 1 snapshot}"

// neverDue has no snapshot taken, except when a run is told to stop, and at best epochs.
const neverDue = "snapshots.every=1000000 passes"

// killedAt trains j, kills it after pass number at (from 1 on), and reports whether it came so
// far. waits has the snapshot of the pass completed before.
func killedAt(t *testing.T, j *configs.Job, at int, waits bool) bool {
	t.Helper()
	c := newCrash(t, j)
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil)) // shown where the test fails
	passes := 0
	opts.afterPass = func(_ context.Context, r *run) error {
		if passes++; passes < at {
			return nil
		}
		if waits {
			r.snapshots.wait()
		}
		c.now()
		return errCrash
	}
	_, err := Train(t.Context(), j, opts)
	if err == nil {
		return false
	}
	if !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	c.happened()
	return true
}

// TestResume kills runs between any two passes: what goes on from the snapshot makes the
// same model and the same reports.
func TestResume(t *testing.T) {
	set := []string{everyPass}
	left := job(t, "deepfm", set...)
	want := outcome(t, left, train(t, left))
	for at := 1; ; at++ {
		j := job(t, "deepfm", set...)
		if !killedAt(t, j, at, true) {
			if at < 5 {
				t.Fatalf("only %d passes", at)
			}
			break
		}
		s := train(t, j)
		got := outcome(t, j, s)
		got.compare(t, &want)
		if resumed := len(s.Resumed) == 1; resumed != (at > 1) {
			t.Errorf("killed at pass %d: went on at %+v", at, s.Resumed)
		}
		if left := entriesOf(t, filepath.Join(j.Output.ModelDir, "gen-*", "*")); left != "LOCK MODEL.json dense-0000000047 job.yaml reports statistics.json table" {
			t.Errorf("left in the generation: %s", left)
		}
		if tables := entriesOf(t, filepath.Join(j.Output.ModelDir, "gen-*", "table", "snapshot*")); strings.Contains(tables, " ") {
			t.Errorf("left of the table: %s", tables)
		}
	}
}

// entriesOf are the names of the files that match a pattern.
func entriesOf(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return strings.Join(paths, " ")
}

// resumeSettings are jobs with all that has to go on: epochs, evaluation, early stopping,
// warm start, kinds of tables, formats of values, sampling, limits, bad rows. In short mode they are those
// named.
func resumeSettings(t *testing.T, short ...string) map[string][]string {
	t.Helper()
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.tsv")
	data, err := os.ReadFile(filepath.Join(log, "train-0.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i := 20; i < len(lines); i += 37 {
		lines[i] = "bad\t" + lines[i]
	}
	if err := os.WriteFile(bad, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	first := job(t, "deepfm", "optimizer.rows.kind=adam")
	train(t, first)
	all := map[string][]string{
		"validation":       {"training.epochs=4", "training.early_stopping={metric: auc, patience: 2}", "data.validation_fraction=0.15", "data.train=[" + bad + "]", "data.max_bad_fraction=1"},
		"early stopping":   {"training.epochs=4", "training.early_stopping={metric: auc, patience: 2}", "output.log_every=3"},
		"worse epochs":     {"training.epochs=5", "training.early_stopping={metric: log_loss, patience: 2}", "optimizer.dense.learning_rate=0.1", "optimizer.rows.learning_rate=0.3"},
		"adam":             {"training.epochs=2", "optimizer.dense.kind=adam", "optimizer.rows.kind=adam", "optimizer.schedule={warmup_steps: 10, decay: cosine, decay_steps: 30}"},
		"ssd":              onSSD("training.epochs=2", "sparse_table.memory_bytes=8MiB", "model.embedding_dim=32", "pipeline.batches_per_pass=4"),
		"ssd and stopping": onSSD("training.epochs=4", "training.early_stopping={metric: log_loss, patience: 1}", "optimizer.rows.learning_rate=0.3", "pipeline.batches_per_pass=4"),
		"directories":      onSSD("sparse_table.dirs=[MODEL-a, MODEL-b]", "pipeline.batches_per_pass=4"),
		"16 bits":          {"sparse_table.value_format=bfloat16", "training.epochs=2"},
		"limits":           {"training.max_examples=3333", "training.epochs=3", "data.limit=1500", "sparse_table.expiry.min_show=2"},
		"sampling":         {"data.negative_sampling=0.6", "training.epochs=2", "data.shuffle_buffer=1000"},
		"averages":         {"training.epochs=4", "training.early_stopping={metric: auc, patience: 2}", averaging, "optimizer.dense.learning_rate=0.02"},
		"in order":         {"data.shuffle_buffer=0", "model.dropout=0.3"},
		"bad rows":         {"data.train=[" + bad + ", " + log + "/train-1.tsv.gz]", "data.eval=[" + bad + "]", "data.max_bad_fraction=0.1", "training.epochs=2", "data.quarantine_rows=45"},
		"warm start":       {"training.warm_start=" + first.Output.ModelDir, "optimizer.rows.kind=adam", "training.epochs=2"},
		"weight decay":     {"training.warm_start=" + first.Output.ModelDir, "optimizer.rows={kind: adam, weight_decay: 0.5}", "training.epochs=2"},
		"events":           {"output.tensorboard=MODEL/tensorboard", "output.log_every=1"},
	}
	if testing.Short() {
		maps.DeleteFunc(all, func(name string, _ []string) bool { return !slices.Contains(short, name) })
	}
	return all
}

// TestResumeOfAllKinds kills runs of all kinds at some passes, several times each, while
// a snapshot is or is not being written.
func TestResumeOfAllKinds(t *testing.T) {
	for name, set := range resumeSettings(t, "ssd and stopping", "bad rows", "adam") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := job(t, "deepfm", append(slices.Clip(set), "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			rng := testseed.Rand(t)
			for range 2 {
				j := job(t, "deepfm", append(slices.Clip(set), everyPass)...)
				// saved says that the last process that was killed left a whole snapshot. One that
				// was killed while it saved the next one may not have: its directories are copied
				// file by file, so that the copy of the table's catalog may mix two instants,
				// which a crash cannot do, and the run then starts over.
				kills, saved := 0, false
				for {
					at, waits := 1+rng.IntN(16), rng.IntN(2) == 0
					if !killedAt(t, j, at, waits) {
						break
					}
					kills++
					saved = waits && (saved || at > 1)
				}
				s := load(t, j.Output.ModelDir)
				summary := readSummary(t, j)
				if s.Saved.Step != summary.Steps || len(summary.Resumed) > kills || saved && len(summary.Resumed) == 0 {
					t.Errorf("%d kills, went on %d times, at %+v", kills, len(summary.Resumed), summary.Resumed)
				}
				got := outcome(t, j, summary)
				got.compare(t, &want)
				checkOneSnapshot(t, j)
			}
		})
	}
}

// readSummary reads the summary of a job that has made a model.
func readSummary(t *testing.T, j *configs.Job) *report.Summary {
	t.Helper()
	s := new(report.Summary)
	if err := json.Unmarshal([]byte(reportOfModel(t, j, report.SummaryName)), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// checkOneSnapshot checks that a model has no snapshot of its table but its own.
func checkOneSnapshot(t *testing.T, j *configs.Job) {
	t.Helper()
	m, err := modeltable.Find(j.Output.ModelDir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Model.Close()
	o := m.Options
	o.ReadOnly = true
	table, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if infos, err := table.Snapshots(); err != nil || len(infos) != 1 {
		t.Errorf("the table has %d snapshots, %v", len(infos), err)
	}
}
