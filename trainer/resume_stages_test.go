package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/metrics"
	"aibox/trainer/report"
)

// TestKilledWhileSaving kills runs at every stage of saving a snapshot: in training, at
// the best epoch, and at the end.
func TestKilledWhileSaving(t *testing.T) {
	set := []string{"training.epochs=3", "training.early_stopping={metric: log_loss, patience: 1}", "optimizer.rows.learning_rate=0.3", everyPass}
	left := job(t, "fm", set...)
	want := outcome(t, left, train(t, left))
	for _, stage := range []string{stageTableSaved, stagePrepared, stageCommitted, stageDropped} {
		for _, at := range []int{1, 2, 7, 12, 13, 14, -1} {
			if testing.Short() && at > 2 {
				continue
			}
			t.Run(fmt.Sprintf("%s, number %d", stage, at), func(t *testing.T) {
				t.Parallel()
				j := job(t, "fm", set...)
				opts := quiet
				last, n := newCrash(t, j), 0
				opts.afterPass = func(_ context.Context, r *run) error {
					r.snapshots.wait() // so that there is one of each pass
					return nil
				}
				opts.atStage = func(now string) {
					if now != stage {
						return
					}
					if n++; n == at {
						last.now()
					} else if at < 0 { // the last one
						last = newCrash(t, j)
						last.now()
					}
				}
				if _, err := Train(t.Context(), j, opts); err != nil {
					t.Fatal(err)
				}
				last.happened()
				got := outcome(t, j, train(t, j))
				got.compare(t, &want)
				checkOneSnapshot(t, j)
			})
		}
	}
}

// TestStopped checks that a run that is stopped saves its state, says how to resume it, and resumes
// from exactly there.
func TestStopped(t *testing.T) {
	set := []string{"training.epochs=2", neverDue}
	left := job(t, "deepfm", set...)
	want := outcome(t, left, train(t, left))
	for name, stopAt := range map[string]int64{"in the first pass": 4, "in the second epoch": 47 + 20, "before an evaluation": -1} {
		t.Run(name, func(t *testing.T) {
			j := job(t, "deepfm", append(set, "snapshots.on_stop_seconds=3600")...)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			stop := errors.New("a signal")
			opts := quiet
			if stopAt < 0 {
				opts.Logger = slog.New(cancelling{quiet.Logger.Handler(), "epoch trained", func() { cancel(stop) }})
			}
			opts.afterPass = func(_ context.Context, r *run) error {
				if r.state.Engine.Step == stopAt {
					cancel(stop)
				}
				return nil
			}
			_, err := Train(ctx, j, opts)
			var again *ResumableError
			if errkind.Of(ctx, err) != errkind.Interrupted || !errors.As(err, &again) || !strings.Contains(err.Error(), "--fresh") {
				t.Fatalf("%v", err)
			}
			if from := again.From.Step; from < stopAt || stopAt > 0 && from > stopAt+4 || stopAt < 0 && from != 47 {
				t.Errorf("stopped at step %d, it goes on from %+v", stopAt, again.From)
			}
			s := train(t, j)
			if len(s.Resumed) != 1 || s.Resumed[0].Step != again.From.Step || s.Snapshots.Taken != 1 || s.Snapshots.StallSeconds <= 0 || s.Snapshots.Bytes <= 0 {
				t.Errorf("went on at %+v with %+v", s.Resumed, s.Snapshots)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
		})
	}
}

// TestStoppedBetweenEvaluations checks a run that is stopped after it has evaluated the model on
// the examples that it holds out, and before it has done so on data.eval. Resumed, it must not
// evaluate the former again: each line of metrics and each bad row must appear once.
func TestStoppedBetweenEvaluations(t *testing.T) {
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(log, "train-0.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(t.TempDir(), "train.tsv") // its end is held out
	if err := os.WriteFile(held, append(data, "not a row\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	j := job(t, "fm", "data.train=["+held+"]", "training.epochs=2", "data.validation_fraction=0.2", "snapshots.on_stop_seconds=3600", neverDue)
	want := outcome(t, j, train(t, j))
	if want.quarantine == "" {
		t.Fatal("there is no bad row")
	}
	for epoch := range 2 {
		if err := os.RemoveAll(j.Output.ModelDir); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		opts, n := quiet, 0
		opts.Logger = slog.New(cancelling{quiet.Logger.Handler(), "evaluated", func() {
			if n++; n == 2*epoch+1 { // of which data.eval are the second ones
				cancel()
			}
		}})
		if _, err := Train(ctx, j, opts); !errors.As(err, new(*ResumableError)) {
			t.Fatalf("epoch %d: %v", epoch+1, err)
		}
		got := outcome(t, j, train(t, j))
		got.compare(t, &want)
	}
}

// cancelling is a slog.Handler that calls do at a message.
type cancelling struct {
	slog.Handler
	at string
	do func()
}

func (h cancelling) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.at {
		h.do()
	}
	return nil
}

func (h cancelling) Enabled(context.Context, slog.Level) bool { return true }

// TestNoTimeToStop checks that without time for a last snapshot, or with snapshots switched off, a
// run that is stopped ends all the same.
func TestNoTimeToStop(t *testing.T) {
	for _, set := range [][]string{{neverDue, "snapshots.on_stop_seconds=0"}, {"snapshots.every=none"}} {
		j := job(t, "fm", set...)
		ctx, cancel := context.WithCancel(t.Context())
		opts := quiet
		opts.afterPass = func(_ context.Context, r *run) error {
			cancel()
			<-r.grace.Done()
			return nil
		}
		if _, err := Train(ctx, j, opts); errkind.Of(ctx, err) != errkind.Interrupted || errors.As(err, new(*ResumableError)) {
			t.Errorf("%v: %v", set, err)
		}
		if gens, _ := filepath.Glob(filepath.Join(j.Output.ModelDir, "gen-*")); len(gens) != 0 {
			t.Errorf("%v: %v are left", set, gens)
		}
	}
}

// TestStartsOver checks that the log names what differs from the interrupted run, and that training
// then starts over. It also starts over if files are damaged, and with --fresh.
func TestStartsOver(t *testing.T) {
	log, err := testjobs.Log()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(log, "eval.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "data.tsv")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	set := []string{"data.train=[" + file + "]", everyPass, "pipeline.batches_per_pass=1"}
	spoil := func(pattern string, at int64) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			files, _ := filepath.Glob(filepath.Join(dir, "gen-*", pattern))
			if len(files) == 0 {
				t.Fatalf("no %s", pattern)
			}
			for _, name := range files {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if at < 0 {
					err = os.Remove(name)
				} else {
					data[min(int(at), len(data)-1)] ^= 1
					err = os.WriteFile(name, data, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		set   []string
		do    func(t *testing.T, dir string)
		fresh bool
		says  string
	}{
		"nothing differs": {says: "training resumes from the snapshot of an interrupted run"},
		"another value":   {set: []string{"training.batch_size=65"}, says: "training.batch_size"},
		"another budget": {
			set:  []string{"pipeline.compute_threads=1", "pipeline.reader_threads=1", "pipeline.read_queue=2", "sparse_table.memory_bytes=64MiB", "output.keep_generations=1"},
			says: "training resumes from the snapshot of an interrupted run",
		},
		"other passes":        {set: []string{"pipeline.batches_per_pass=2"}, says: "differences=pipeline.batches_per_pass"},
		"two values":          {set: []string{"training.batch_size=65", "seed=3"}, says: `differences="seed; training.batch_size"`},
		"another date":        {set: []string{"--date"}, says: "the job's date (2026-11-20, was none)"},
		"a file has changed":  {do: func(*testing.T, string) { _ = os.Chtimes(file, time.Time{}, time.Now().Add(-time.Hour)) }, says: file},
		"fresh":               {fresh: true, says: "as --fresh says"},
		"RESUME.json damaged": {do: spoil("RESUME.json", 200), says: "is damaged; training starts over"},
		"dense damaged":       {do: spoil("dense-*", 100), says: "is damaged; training starts over"},
		"dense gone":          {do: spoil("dense-*", -1), says: "is damaged; training starts over"},
		"table damaged":       {do: spoil("table/snapshot*", 1000), says: "is damaged; training starts over"},
		"table gone":          {do: spoil("table/snapshot*", -1), says: "is damaged; training starts over"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t, "fm", set...)
			if !killedAt(t, j, 5, true) {
				t.Fatal("not killed")
			}
			if c.do != nil {
				c.do(t, j.Output.ModelDir)
			}
			now := *j
			if len(c.set) > 0 && c.set[0] == "--date" {
				now.Dated, now.Date = true, time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			} else {
				now = *job(t, "fm", append(slices.Clip(set), append(c.set, "output.model_dir="+j.Output.ModelDir)...)...)
			}
			var said bytes.Buffer
			s, err := Train(t.Context(), &now, Options{Logger: slog.New(slog.NewTextHandler(&said, nil)), Fresh: c.fresh})
			if err != nil {
				t.Fatal(err)
			}
			if on := len(s.Resumed) == 1; on != strings.HasPrefix(c.says, "training resumes") || strings.Contains(said.String(), "<nil>") || !strings.Contains(said.String(), c.says) {
				t.Errorf("went on: %v; said:\n%s", on, said.String())
			}
			if n := strings.Count(said.String(), "training starts over"); n > 1 {
				t.Errorf("it said %d times that training starts over:\n%s", n, said.String())
			}
			if name == "another date" {
				return
			}
			left := job(t, "fm", append(slices.Clip(set), c.set...)...)
			want := outcome(t, left, train(t, left))
			got := outcome(t, &now, s)
			got.compare(t, &want)
			checkOneSnapshot(t, &now)
		})
	}
}

// TestBudgetIsRaised checks that a job whose table has outgrown its budget is resumed from its last
// snapshot with a larger one.
func TestBudgetIsRaised(t *testing.T) {
	set := []string{everyPass, "pipeline.batches_per_pass=1", "model.embedding_dim=64", "sparse_table.memory_bytes=64MiB"}
	left := job(t, "fm", set...)
	want := outcome(t, left, train(t, left))
	small := job(t, "fm", set...)
	opts := quiet
	opts.afterPass = func(_ context.Context, r *run) error {
		r.snapshots.wait()
		return nil
	}
	for small.SparseTable.MemoryBytes = 1 << 20; ; small.SparseTable.MemoryBytes += 64 << 10 {
		_, err := Train(t.Context(), small, opts)
		if !errors.Is(err, sparsetable.ErrBudget) {
			t.Fatalf("with %d bytes: %v", small.SparseTable.MemoryBytes, err)
		}
		if errors.As(err, new(*ResumableError)) {
			break
		}
	}
	small.SparseTable.MemoryBytes = 64 << 20
	s := train(t, small)
	if len(s.Resumed) != 1 {
		t.Errorf("it went on at %+v", s.Resumed)
	}
	got := outcome(t, small, s)
	got.compare(t, &want)
}

// TestFailuresThatRepeat checks that a run is not resumed after a failure that would occur again.
func TestFailuresThatRepeat(t *testing.T) {
	for _, c := range []struct {
		err  error
		goes bool
	}{
		{fmt.Errorf("reading: %w", os.ErrPermission), true},
		{&os.PathError{Op: "write", Path: "x", Err: os.ErrInvalid}, true},
		{metrics.ErrNotFinite, false},
		{errkind.Errorf(errkind.Data, "too many bad rows"), false},
		{errkind.Errorf(errkind.LostData, "too much is lost"), false},
		{fmt.Errorf("pass 3: %w", sparsetable.ErrMemory), true},
	} {
		j := job(t, "fm", everyPass)
		opts := quiet
		passes := 0
		opts.afterPass = func(_ context.Context, r *run) error {
			if passes++; passes < 3 {
				return nil
			}
			r.snapshots.wait()
			return c.err
		}
		_, err := Train(t.Context(), j, opts)
		if !errors.Is(err, c.err) || errors.As(err, new(*ResumableError)) != c.goes {
			t.Errorf("%v: the run ended with %v", c.err, err)
		}
		left, _ := filepath.Glob(filepath.Join(j.Output.ModelDir, "gen-*", "RESUME.json"))
		if (len(left) == 1) != c.goes {
			t.Errorf("%v: left are %v", c.err, left)
		}
		if _, err := os.Stat(filepath.Join(j.Output.ModelDir, failedSummaryName)); err != nil {
			t.Error(err)
		}
		if s := train(t, j); (len(s.Resumed) == 1) != c.goes {
			t.Errorf("%v: went on at %+v", c.err, s.Resumed)
		}
	}
}

// TestSnapshotsThatFail do not end the training.
func TestSnapshotsThatFail(t *testing.T) {
	want := train(t, job(t, "fm")).Digest
	j := job(t, "fm", everyPass)
	opts := quiet
	passes := 0
	opts.afterPass = func(_ context.Context, r *run) error {
		if passes++; passes == 1 { // RESUME.json cannot be replaced
			return os.MkdirAll(filepath.Join(filepath.Dir(r.models.writer.TableDir()), "RESUME.json", "x"), 0o755)
		}
		if passes == 4 {
			r.snapshots.wait()
			return os.RemoveAll(filepath.Join(filepath.Dir(r.models.writer.TableDir()), "RESUME.json"))
		}
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest != want || s.Snapshots.Failed == 0 || s.Snapshots.Taken == 0 {
		t.Errorf("digest %s, want %s; %+v", s.Digest, want, s.Snapshots)
	}
	checkOneSnapshot(t, j)
}

// TestMetricsElsewhere checks that a metrics file to which several runs append has each line once.
func TestMetricsElsewhere(t *testing.T) {
	set := []string{everyPass, "output.metrics=MODEL-metrics.jsonl", "output.log_every=1"}
	left := job(t, "fm", set...)
	train(t, left)
	j := job(t, "fm", set...)
	const before = `{"kind":"train","epoch":1,"step":900,"trained_examples":900}` + "\n"
	if err := os.WriteFile(j.Output.Metrics, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{4, 3} {
		if !killedAt(t, j, at, true) {
			t.Fatal("not killed")
		}
	}
	train(t, j)
	if s := readSummary(t, j); len(s.Resumed) != 2 {
		t.Errorf("went on at %+v", s.Resumed)
	}
	want, err1 := os.ReadFile(left.Output.Metrics)
	have, err2 := os.ReadFile(j.Output.Metrics)
	if err := errors.Join(err1, err2); err != nil || string(have) != before+string(want) {
		t.Errorf("%v\n%s\nwant\n%s%s", err, have, before, want)
	}
}

// TestMetricsOfOthers checks that lines that other runs have meanwhile appended to a metrics file
// stay.
func TestMetricsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	line := func(step int) string { return fmt.Sprintf(`{"kind":"train","epoch":1,"step":%d}`+"\n", step) }
	before := line(10) + line(20)
	for _, c := range []struct {
		after  string
		others bool
	}{
		{"", false}, {line(20) + line(30), false}, {line(30) + `{"kind":"tr`, false}, {line(30) + line(10), true}, {line(5), true}, {"note\n", true},
	} {
		if err := os.WriteFile(path, []byte(before+c.after), 0o644); err != nil {
			t.Fatal(err)
		}
		others, size, err := report.LinesOfOthers(path, int64(len(before)), 20)
		if err != nil || others != c.others || size != int64(len(before+c.after)) {
			t.Errorf("%q: %v, %d bytes, %v", c.after, others, size, err)
		}
	}
}

// TestOtherSettingsOfTheTable checks that a job with its table on SSD can be resumed with other
// values of settings that change only its speed and its space, and not its rows.
func TestOtherSettingsOfTheTable(t *testing.T) {
	set := onSSD(everyPass, "pipeline.batches_per_pass=1", "sparse_table.memory_bytes=8MiB", "model.embedding_dim=32")
	j := job(t, "fm", set...)
	if !killedAt(t, j, 5, true) {
		t.Fatal("not killed")
	}
	others := append(slices.Clip(set), "sparse_table.memory_bytes=16MiB", "sparse_table.cache_policy=lru_lfu", "sparse_table.direct_io=off", "sparse_table.queue_depth=4",
		"sparse_table.hot_bytes=1MiB", "sparse_table.max_space_amplification=1.5", "sparse_table.dir_budget_bytes=1GiB", "data.hdfs.timeout_ms=1000", "output.model_dir="+j.Output.ModelDir)
	now := job(t, "fm", others...)
	s := train(t, now)
	if len(s.Resumed) != 1 {
		t.Fatal("training started over")
	}
	undisturbed := job(t, "fm", set...)
	want := outcome(t, undisturbed, train(t, undisturbed))
	got := outcome(t, now, s)
	got.compare(t, &want)
}
