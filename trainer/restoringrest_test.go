package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/generations"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldiff"
	"aibox/trainer/modeldir"
	"aibox/trainer/modeltable"
	"aibox/trainer/remote"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// madeElsewhere trains a model, so many nights, whose table has two directories, and publishes
// it to the remote directory that is returned.
func madeElsewhere(t *testing.T, nights int) (j *configs.Job, uri string) {
	t.Helper()
	uri = t.TempDir()
	j = withBuckets(t, "training.warm_start=latest", "output.keep_generations=2", "output.remote="+uri, "sparse_table.dirs=[MODEL-a,MODEL-b]")
	for range nights {
		train(t, j)
	}
	return j, uri
}

// restoringTo are options that restore a model to new directories.
func restoringTo(t *testing.T, from string) transfer.RestoreOptions {
	t.Helper()
	at := t.TempDir()
	uri, number := remote.SplitURI(from)
	return transfer.RestoreOptions{From: uri, Number: number, To: filepath.Join(at, "m"), Dirs: []string{filepath.Join(at, "x"), filepath.Join(at, "y"), filepath.Join(at, "z")}, Options: quiet.transfer()}
}

// usableHandler is a log that calls a function when it says that a model is usable, while files of it
// lack bytes.
type usableHandler struct {
	slog.Handler
	then func()
}

func (h usableHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h usableHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "the model is usable; its other files are fetched now" {
		h.then()
	}
	return h.Handler.Handle(ctx, r)
}

// whenUsable has a function called when the model is published and files of it lack bytes.
func whenUsable(o *transfer.RestoreOptions, then func()) {
	o.Logger = slog.New(usableHandler{o.Logger.Handler(), then})
}

// interrupted restores a model until it is published, and fetches nothing after that.
func interrupted(t *testing.T, o transfer.RestoreOptions) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	whenUsable(&o, stop)
	if _, err := transfer.Restore(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("restoring was to be interrupted, but %v", err)
	}
	if records(t, append(o.Dirs, o.To)...) == 0 {
		t.Fatal("everything has arrived: the test shows nothing")
	}
}

// evaluated is what an evaluation of an open model says.
func evaluated(t *testing.T, l *inference.Model) string {
	t.Helper()
	e, err := l.Evaluate(t.Context(), l.Job.Data.Eval)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// whatItSays is the digest of a model, its metrics and its predictions.
func whatItSays(t *testing.T, dir string) (digest, metrics, predictions string) {
	t.Helper()
	in, err := inference.Inspect(t.Context(), dir, false, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	l := load(t, dir)
	out := filepath.Join(t.TempDir(), "out.tsv")
	if _, err := l.Predict(t.Context(), inference.PredictOptions{Data: l.Job.Data.Eval, Output: out}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return in.Digest, evaluated(t, l), string(data)
}

// noneArrived fails the test unless all bucket files in dirs are zeros.
func noneArrived(t *testing.T, dirs []string) {
	t.Helper()
	n := 0
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*", "*.bucket"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil || len(bytes.Trim(data, "\x00")) > 0 {
				t.Errorf("%s has arrived, or was written by who only reads it: %v", name, err)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("there are no bucket files: the test shows nothing")
	}
}

// TestReadsWhileModelArrives checks a model that is being restored. As soon as it is published
// here, it can be evaluated, used for predictions, inspected, compared and verified, with the same
// bits as the original model, while none of its bucket files has arrived, and only the restoring
// process writes them. What was opened then can still be used when everything has arrived and the
// remote directory is gone.
func TestReadsWhileModelArrives(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	digest, metrics, predictions := whatItSays(t, j.Output.ModelDir)
	o := restoringTo(t, uri)
	var open *inference.Model
	whenUsable(&o, func() {
		d, m, p := whatItSays(t, o.To)
		if d != digest || m != metrics || p != predictions {
			t.Errorf("the model that arrives is another one: digest %s, want %s; %s, want %s; same predictions: %v", d, digest, m, metrics, p == predictions)
		}
		diff, err := modeldiff.Compare(t.Context(), j.Output.ModelDir, o.To, modeldiff.Options{Top: 3, MemoryBytes: 1 << 20, Examples: 10, Logger: quiet.Logger})
		if err != nil || diff.Total.Before == 0 || diff.Total.Added+diff.Total.Dropped+diff.Total.Moved != 0 {
			t.Errorf("%+v, %v", diff, err)
		}
		verifyArriving(t, o.To)
		all, err := generations.List(o.To)
		if err != nil || len(all) != 1 || all[0].Arriving == nil || all[0].Arriving.Remote != uri || all[0].Arriving.LackingBytes == 0 {
			t.Errorf("%+v, %v", all, err)
		}
		other := *j
		other.Output.ModelDir, other.Output.Metrics, other.Output.TensorBoard = o.To, filepath.Join(o.To, "metrics.jsonl"), "none"
		if _, err := Train(t.Context(), &other, quiet); !errors.Is(err, modeldir.ErrLocked) {
			t.Errorf("a job trains in the directory to which a model is restored: %v", err)
		}
		open = load(t, o.To)
		if got := evaluated(t, open); got != metrics {
			t.Errorf("%s, want %s", got, metrics)
		}
		noneArrived(t, o.Dirs)
	})
	out, err := transfer.Restore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if open == nil || out.UsableSeconds <= 0 || out.Seconds < out.UsableSeconds || out.Moved != out.Bytes {
		t.Errorf("%+v", out)
	}
	if n := records(t, append(o.Dirs, o.To)...); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if err := os.RemoveAll(uri); err != nil {
		t.Fatal(err)
	}
	if got := evaluated(t, open); got != metrics {
		t.Errorf("after all has arrived: %s, want %s", got, metrics)
	}
	in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
	if err != nil || in.Digest != digest || len(in.Faults) > 0 {
		t.Errorf("%+v, %v", in, err)
	}
	if all, err := generations.List(o.To); err != nil || all[0].Arriving != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestRestoreFromElsewhere checks that a model that was arriving from a remote directory, and is
// then restored from a copy of that directory, is complete when the command says so.
func TestRestoreFromElsewhere(t *testing.T) {
	_, uri := madeElsewhere(t, 1)
	o := restoringTo(t, uri)
	interrupted(t, o)
	o.From = t.TempDir()
	if err := os.CopyFS(o.From, os.DirFS(uri)); err != nil {
		t.Fatal(err)
	}
	out, err := transfer.Restore(t.Context(), o)
	if err != nil || !out.Already || records(t, append(o.Dirs, o.To)...) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet); err != nil || len(in.Faults) > 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestRestoreWhatIsLeft checks that a complete model that loses a directory of its table, or bytes
// of a file there, is restored again by the same command, and that what is left of it is not
// fetched again.
func TestRestoreWhatIsLeft(t *testing.T) {
	_, uri := madeElsewhere(t, 1)
	o := restoringTo(t, uri)
	want, err := transfer.Restore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(dir string) error{
		"directory": os.RemoveAll,
		"bytes": func(dir string) error {
			files, err := filepath.Glob(filepath.Join(dir, "*", "*.bucket"))
			if err != nil || len(files) == 0 {
				return fmt.Errorf("no bucket files in %s: %w", dir, err)
			}
			data, err := os.ReadFile(files[0])
			if err != nil {
				return err
			}
			clear(data[len(data)/2:]) // more than what is between two buckets
			return os.WriteFile(files[0], data, 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := damage(o.Dirs[1]); err != nil {
				t.Fatal(err)
			}
			out, err := transfer.Restore(t.Context(), o)
			if err != nil || out.Already || out.Moved == 0 || out.Moved > want.Moved*2/3 {
				t.Errorf("%+v, %v; the first time %d bytes were fetched", out, err, want.Moved)
			}
			if in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet); err != nil || len(in.Faults) > 0 {
				t.Errorf("%+v, %v", in, err)
			}
			if out, err := transfer.Restore(t.Context(), o); err != nil || !out.Already {
				t.Errorf("once more: %+v, %v", out, err)
			}
		})
	}
}

// TestRestoreGoesOnWithoutWhatWasLeft checks that a restore that has used remaining files of an
// earlier table, and was interrupted, can continue when these files are gone. No file of the table
// may get a second place.
func TestRestoreGoesOnWithoutWhatWasLeft(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	digest, _, _ := whatItSays(t, j.Output.ModelDir)
	o := restoringTo(t, uri)
	if _, err := transfer.Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	left, err := modeldir.Open(o.To)
	if err != nil {
		t.Fatal(err)
	}
	o.To, o.Dirs = o.To+"-again", []string{o.Dirs[1], o.Dirs[2], o.Dirs[0]} // so that files are beside those that are left, and would be elsewhere without
	o.RemainingFiles = left.RemainingFiles()
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	diskfault.Inject(func(_, path string) error {
		if filepath.Base(path) == "HEAD" { // of the table's catalog, once all files are in their places
			return syscall.EIO
		}
		return nil
	})
	_, err = transfer.Restore(t.Context(), o)
	diskfault.Inject(nil)
	if !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	o.RemainingFiles = nil
	if _, err := transfer.Restore(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet); err != nil || in.Digest != digest || len(in.Faults) > 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// verifyArriving verifies the table of a model that arrives.
func verifyArriving(t *testing.T, dir string) {
	t.Helper()
	m, err := modeltable.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if _, err := sparsetable.Open(t.Context(), m.Options); !errors.Is(err, sparsetable.ErrArriving) {
		t.Errorf("it is opened for writing: %v", err)
	}
	if err := m.Read(quiet.Logger); err != nil {
		t.Fatal(err)
	}
	done, err := sparsetable.Verify(t.Context(), m.Options, func(f sparsetable.Fault) { t.Error(f) }, nil)
	if bytes, _ := m.NotArrived(); err != nil || done.Buckets == 0 || bytes == 0 {
		t.Errorf("%+v, of which %d bytes came from elsewhere, %v", done, bytes, err)
	}
}

// TestRestoreGoesOn interrupts a restore when the model is published. The model can be read, unless
// the remote directory is gone, in which case the error says so. The same command completes it, and
// does nothing if it is complete. With other options, the model counts as one that exists already.
func TestRestoreGoesOn(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	digest, _, _ := whatItSays(t, j.Output.ModelDir)
	o := restoringTo(t, uri)
	interrupted(t, o)
	if in, err := inference.Inspect(t.Context(), o.To, false, testjobs.Quiet); err != nil || in.Digest != digest {
		t.Errorf("%+v, %v", in, err)
	}
	for _, other := range []string{uri + "@7", uri + "-other"} {
		o := o
		o.From, o.Number = remote.SplitURI(other)
		if _, err := transfer.Restore(t.Context(), o); err == nil {
			t.Errorf("a model of %s is restored where there is one", other)
		}
	}
	if err := os.Rename(uri, uri+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, err := inference.Inspect(t.Context(), o.To, false, testjobs.Quiet); err == nil || !strings.Contains(err.Error(), uri) || !strings.Contains(err.Error(), "aibox restore") {
		t.Errorf("without the remote directory: %v", err)
	}
	noneArrived(t, o.Dirs)
	if err := os.Rename(uri+"-away", uri); err != nil {
		t.Fatal(err)
	}
	named := o
	named.Number = 1
	out, err := transfer.Restore(t.Context(), named)
	if err != nil || out.UsableSeconds != 0 || out.Seconds <= 0 || out.Moved == 0 || out.Generation != 1 || out.From != uri+"@1" {
		t.Fatalf("%+v, %v", out, err)
	}
	in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
	if err != nil || in.Digest != digest || len(in.Faults) > 0 || records(t, append(o.Dirs, o.To)...) > 0 {
		t.Errorf("%+v, %v", in, err)
	}
	for _, from := range []string{uri, uri + "@1"} {
		o := o
		o.From, o.Number = remote.SplitURI(from)
		if out, err := transfer.Restore(t.Context(), o); err != nil || !out.Already || out.Moved != 0 || out.Generation != 1 {
			t.Errorf("the same command again: %+v, %v", out, err)
		}
	}
	other := o
	other.Dirs = o.Dirs[1:]
	if _, err := transfer.Restore(t.Context(), other); !errors.Is(err, modeldir.ErrHasModel) {
		t.Errorf("to other directories of the table: %v", err)
	}
}

// TestRestoresWhereReportsCannotBeReplaced checks that if a report at the top of the model
// directory cannot be replaced, for example because another user has made it, a model is restored
// there with a warning. After an interruption, it is completed by a restore and by what needs all
// of its files.
func TestRestoresWhereReportsCannotBeReplaced(t *testing.T) {
	_, uri := madeElsewhere(t, 1)
	for _, complete := range []func(transfer.RestoreOptions) error{
		func(o transfer.RestoreOptions) error {
			_, err := transfer.Restore(t.Context(), o)
			return err
		},
		func(o transfer.RestoreOptions) error {
			_, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: o.To, Remote: t.TempDir() + "/other", Options: o.Options})
			return err
		},
	} {
		o := restoringTo(t, uri)
		if err := os.MkdirAll(filepath.Join(o.To, report.SummaryName), 0o755); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		said := func() {
			t.Helper()
			if !strings.Contains(log.String(), "not all reports in "+o.To+" are those of this model") {
				t.Errorf("there is no warning:\n%s", &log)
			}
			log.Reset()
		}
		interrupted(t, o)
		said()
		if err := complete(o); err != nil {
			t.Fatal(err)
		}
		said()
		if in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet); err != nil || len(in.Faults) > 0 || records(t, append(o.Dirs, o.To)...) > 0 {
			t.Errorf("%+v, %v", in, err)
		}
	}
}

// TestArrivingModelLosesDirectory checks a model whose restore was interrupted and that then loses
// a directory of its table, or files in one. The same command restores it again completely. Without
// the remote directory that fails, and nothing changes. Publishing the model says what is wrong.
func TestArrivingModelLosesDirectory(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	digest, _, _ := whatItSays(t, j.Output.ModelDir)
	for w, way := range slices.Sorted(maps.Keys(waysToLose)) {
		if way == "unreadable" || way == "in fstab" || strings.HasPrefix(way, "dead") {
			continue // a disk that stays so cannot be restored to
		}
		i := w % 3
		t.Run(fmt.Sprintf("%s/%d", way, i), func(t *testing.T) {
			o := restoringTo(t, uri)
			interrupted(t, o)
			loseIn(t, o.Dirs[i], "*-gen-*", way)
			if _, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: o.To, Remote: t.TempDir(), Options: quiet.transfer()}); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "aibox restore") {
				t.Errorf("it is published: %v", err)
			}
			if len(modeldir.Arriving(o.To)) == 0 {
				t.Error("the record of what lacks is gone, though files are")
			}
			if err := os.Rename(uri, uri+"-away"); err != nil {
				t.Fatal(err)
			}
			if _, err := transfer.Restore(t.Context(), o); errkind.Of(t.Context(), err) != errkind.IO || len(modeldir.Arriving(o.To)) == 0 {
				t.Errorf("without the remote directory, it does not stay as it is: %v", err)
			}
			if err := os.Rename(uri+"-away", uri); err != nil {
				t.Fatal(err)
			}
			out, err := transfer.Restore(t.Context(), o)
			if err != nil || out.Already || out.Moved == 0 || out.Generation != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
			in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
			if err != nil || in.Digest != digest || len(in.Faults) > 0 || records(t, append(o.Dirs, o.To)...) > 0 {
				t.Errorf("%+v, %v", in, err)
			}
			if out, err := transfer.Restore(t.Context(), o); err != nil || !out.Already {
				t.Errorf("the same command again: %+v, %v", out, err)
			}
		})
	}
}

// TestRestoreLosesFiles loses files after the model is published, in the process that restores it.
// The process must not say that the model is complete.
func TestRestoreLosesFiles(t *testing.T) {
	_, uri := madeElsewhere(t, 1)
	o := restoringTo(t, uri)
	whenUsable(&o, func() { loseIn(t, o.Dirs[1], "*-gen-*", "files gone") })
	if out, err := transfer.Restore(t.Context(), o); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "has lost files") {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestUsesModelThatArrives checks that a model whose restore was interrupted is completed by what
// needs all of its files: publishing it, and a job in another directory that starts from it.
func TestUsesModelThatArrives(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	next := func(from string) string {
		n := withBuckets(t, "training.warm_start="+from)
		return train(t, n).Digest
	}
	want := next(j.Output.ModelDir)
	o := restoringTo(t, uri)
	interrupted(t, o)
	if got := next(o.To); got != want || records(t, append(o.Dirs, o.To)...) > 0 {
		t.Errorf("digest %s, want %s", got, want)
	}
	o = restoringTo(t, uri)
	interrupted(t, o)
	copied := t.TempDir() + "/other"
	if out, err := transfer.Publish(t.Context(), transfer.PublishOptions{Model: o.To, Remote: copied, Options: quiet.transfer()}); err != nil || out.Already {
		t.Fatalf("%+v, %v", out, err)
	}
	again := restoringTo(t, copied)
	if _, err := transfer.Restore(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	in, err := inference.Inspect(t.Context(), again.To, true, testjobs.Quiet)
	before, err2 := inference.Inspect(t.Context(), j.Output.ModelDir, false, testjobs.Quiet)
	if err := errors.Join(err, err2); err != nil || in.Digest != before.Digest || len(in.Faults) > 0 {
		t.Errorf("%+v, want %+v: %v", in, before, err)
	}
}

// TestStartsFromModelThatLostFiles checks a model whose restore was interrupted and that has lost
// files of its table. A job that starts from it restores it from output.remote, and makes the same
// model as from a complete one.
func TestStartsFromModelThatLostFiles(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	whole := withBuckets(t, "training.warm_start="+j.Output.ModelDir)
	want := outcome(t, whole, train(t, whole))
	o := restoringTo(t, uri)
	interrupted(t, o)
	loseIn(t, o.Dirs[1], "*-gen-*", "files gone")
	n := withBuckets(t, "training.warm_start="+o.To, "output.remote="+uri)
	s, said := trainAloud(t, n)
	got := outcome(t, n, s)
	got.compare(t, &want)
	if !strings.Contains(said, "has lost files; the model is restored from output.remote for this run") {
		t.Errorf("it does not say so:\n%s", said)
	}
}

// TestRestoreTakenBack checks a file of the newest model that turns out to be damaged when the
// model is published, and perhaps in use. The model is withdrawn, and the newest older one is
// restored; a model that is requested by its number is not replaced. The same happens if the
// process was killed after it had detected the damage.
func TestRestoreTakenBack(t *testing.T) {
	j, uri := madeElsewhere(t, 2)
	older, err := inference.Inspect(t.Context(), modeldir.JoinName(j.Output.ModelDir, 1), false, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := openDirectory(t, uri).Generations(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d generations: %v", len(all), err)
	}
	damageBuckets(t, uri, all)
	for _, c := range []string{"", "by number", "read", "killed"} {
		var log bytes.Buffer
		o := restoringTo(t, uri)
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		tables := 1
		switch c {
		case "by number":
			o.Number, tables = 2, 0
		case "read":
			tables = 2 // they stay as long as they are read
			whenUsable(&o, func() { load(t, o.To) })
		case "killed":
			interrupted(t, o)
			knowDamage(t, o)
			if _, err := inference.Load(t.Context(), o.To, configs.LoadOptions{}, testjobs.Quiet); err == nil || !strings.Contains(err.Error(), "cannot be completed") {
				t.Errorf("a model that is known to be damaged is read: %v", err)
			}
			if all, err := generations.List(o.To); err != nil || all[0].Arriving == nil || all[0].Arriving.Damaged == "" {
				t.Errorf("%+v, %v", all, err)
			}
		}
		out, err := transfer.Restore(t.Context(), o)
		if c == "by number" {
			var damaged *remote.DamagedError
			if _, openErr := modeldir.Open(o.To); !errors.As(err, &damaged) || !errors.Is(openErr, modeldir.ErrNoModel) {
				t.Errorf("a model that is damaged: %v, %v", err, openErr)
			}
		} else {
			if err != nil || out.Generation != 1 || out.Older != 1 || !strings.Contains(log.String(), "what was restored of it is removed") || !strings.Contains(log.String(), "the newest older one is restored instead") {
				t.Fatalf("%s: %+v, %v\n%s", c, out, err, log.String())
			}
			in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
			if err != nil || in.Digest != older.Digest || len(in.Faults) > 0 {
				t.Errorf("%s: %+v, %v", c, in, err)
			}
		}
		for _, dir := range o.Dirs {
			if names, err := os.ReadDir(dir); err != nil || len(names) != tables {
				t.Errorf("%s: %s holds %v, %v", c, dir, names, err)
			}
		}
		if _, err := os.Stat(filepath.Join(o.To, report.SummaryName)); (err == nil) != (c != "by number") {
			t.Errorf("%s: the summary: %v", c, err)
		}
	}
}

// TestRestoreTakenBackKeepsFiles checks that undamaged files of the withdrawn model that are also
// part of the older one are not fetched again, and that nothing else is left of it.
func TestRestoreTakenBackKeepsFiles(t *testing.T) {
	j, uri := madeElsewhere(t, 1)
	j.Training.MaxExamples = 64 // so that most files stay as they are
	train(t, j)
	older, err := inference.Inspect(t.Context(), modeldir.JoinName(j.Output.ModelDir, 1), false, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := openDirectory(t, uri).Generations(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d generations: %v", len(all), err)
	}
	damageBuckets(t, uri, all)
	for _, inside := range []bool{false, true} {
		o := restoringTo(t, uri)
		if inside {
			o.Dirs = nil
		}
		var arrived []remote.File
		whenUsable(&o, func() { // all files of both have arrived, the last of them damaged
			if arrived != nil {
				return // it is the older one's turn
			}
			table := modeldir.Arriving(o.To)[0]
			for _, f := range all[1].Files {
				at := table.Find(filepath.Base(f.Name))
				if !transfer.IsBucketFile(&f) || at == "" {
					continue
				}
				var data []byte
				for _, p := range f.Parts {
					part, err := os.ReadFile(filepath.Join(uri, "objects", p.Object))
					if err != nil {
						t.Fatal(err)
					}
					data = append(data, part...)
				}
				file, err := os.OpenFile(at, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				_, err = file.WriteAt(data, 0) // what follows in the newer one is its own
				if err := errors.Join(err, file.Close()); err != nil {
					t.Fatal(err)
				}
				arrived = append(arrived, f)
			}
		})
		out, err := transfer.Restore(t.Context(), o)
		if err != nil || out.Generation != 1 || out.Older != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		kept := int64(0)
		for _, f := range arrived {
			kept += f.Bytes
		}
		if kept == 0 || out.Moved > out.Bytes-kept {
			t.Errorf("in the model directory: %v: of %d bytes %d were there, and %d were fetched", inside, out.Bytes, kept, out.Moved)
		}
		in, err := inference.Inspect(t.Context(), o.To, true, testjobs.Quiet)
		if err != nil || in.Digest != older.Digest || len(in.Faults) > 0 {
			t.Errorf("%+v, %v", in, err)
		}
		if left := entriesOf(t, o.To+"/gen-*"); left != "gen-000001" {
			t.Errorf("there are %s", left)
		}
	}
}

// damageBuckets changes a byte in each bucket object that the newest generation has alone.
func damageBuckets(t *testing.T, dir string, all []*remote.Manifest) {
	t.Helper()
	shared := make(map[string]bool)
	for _, m := range all[1:] {
		for _, f := range m.Files {
			for _, p := range f.Parts {
				shared[p.Object] = true
			}
		}
	}
	n := 0
	for _, f := range all[0].Files {
		for _, p := range f.Parts {
			if !transfer.IsBucketFile(&f) || shared[p.Object] {
				continue
			}
			name := filepath.Join(dir, "objects", p.Object)
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-1] ^= 1
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		t.Fatal("the newest generation has no bucket files of its own")
	}
}

// knowDamage has the record say that the files of a model are damaged.
func knowDamage(t *testing.T, o transfer.RestoreOptions) {
	t.Helper()
	tables := modeldir.Arriving(o.To)
	if len(tables) != 1 {
		t.Fatal(tables)
	}
	a, err := openDirectory(t, o.From).OpenArriving(tables[0].Records, tables[0].Find)
	if err != nil {
		t.Fatal(err)
	}
	a.MarkDamaged(errors.New("it is known"))
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreCompletesWhatTrainingLeft checks a night that has started from a model of
// output.remote and was killed while that model arrived. `aibox restore` completes the files of
// both, and the night can be resumed.
func TestRestoreCompletesWhatTrainingLeft(t *testing.T) {
	set := []string{"training.warm_start=latest", everyPass, "output.keep_generations=2"}
	left := withBuckets(t, set...)
	train(t, left)
	want := outcome(t, left, train(t, left))
	uri := t.TempDir()
	j := withBuckets(t, append(set, "output.remote="+uri)...)
	train(t, j)
	lost(t, j)
	inBackground(t, func(*remote.Arriving) {})
	crashAfter(t, j, 2, func(r *run) { r.snapshots.wait() })
	if n := records(t, j.Output.ModelDir); n != 2 {
		t.Fatalf("%d records", n)
	}
	out, err := transfer.Restore(t.Context(), transfer.RestoreOptions{From: uri, Job: j.PlainName(), To: j.Output.ModelDir, Options: quiet.transfer()})
	if err != nil || out.Generation != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if n := records(t, j.Output.ModelDir); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if err := os.RemoveAll(uri); err != nil {
		t.Fatal(err)
	}
	in, err := inference.Inspect(t.Context(), modeldir.JoinName(j.Output.ModelDir, 1), true, testjobs.Quiet)
	if err != nil || len(in.Faults) > 0 {
		t.Errorf("%+v, %v", in, err)
	}
	s, err := Train(t.Context(), j, quiet)
	if err != nil || len(s.Resumed) == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}
