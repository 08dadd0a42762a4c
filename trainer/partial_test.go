package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/refill"
	"aibox/trainer/report"
)

// partialJob is a job of which half of the memory is enough for its table, and which is too
// large for it all the same.
func partialJob(t *testing.T, set ...string) *configs.Job {
	return job(t, "fm", onTwoDisks(append([]string{
		"sparse_table.memory_bytes=12MiB", "model.embedding_dim=256", "optimizer.rows.learning_rate=0.002", "recovery.mode=partial",
	}, set...)...)...)
}

// TestPartialRecoveryOfNothingTrained restores lost rows from a snapshot of the very instant from
// which the run is resumed, so that nothing is lost and the model is that of an undisturbed run.
// That shows that the right rows are restored, and no others.
func TestPartialRecoveryOfNothingTrained(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	for way := range waysToLose {
		for i := range 2 {
			t.Run(fmt.Sprintf("%s/%d", way, i), func(t *testing.T) {
				j := partialJob(t, "snapshots.remote="+t.TempDir())
				stopped := stoppedAfterUpload(t, j, 13)
				lose(t, j, i, way)
				s, said := trainAloud(t, j)
				if len(s.Recoveries) != 1 {
					t.Fatalf("recoveries %+v\n%s", s.Recoveries, said)
				}
				rec := s.Recoveries[0]
				if rec.Mode != configs.RecoveryPartial || rec.Step != stopped || rec.Again != 0 || rec.LostSamples != 0 || rec.RowsLost == 0 || rec.RowsRestored != rec.RowsLost {
					t.Errorf("stopped at step %d: %+v\n%s", stopped, rec, said)
				}
				if model := load(t, j.Output.ModelDir).Saved.PartialRecovery; model != (modeldir.PartialRecovery{}) || !strings.Contains(said, "will be that of an undisturbed run") || !strings.Contains(rec.Text(), "nothing is lost") {
					t.Errorf("the model says %+v, and the run %q\n%s", model, rec.Text(), said)
				}
				got := outcome(t, j, s)
				got.compare(t, &want)
				checkOneSnapshot(t, j)
			})
		}
	}
}

// TestPartialRecoveryOfTheBestEpoch loses a directory after the best epoch, before another snapshot
// is taken, so that the rows of that epoch have to be restored, too. Training continues until the
// patience is used up, and the model is that of the best epoch. Here nothing was trained since the
// upload, so that it is also that of an undisturbed run.
func TestPartialRecoveryOfTheBestEpoch(t *testing.T) {
	set := []string{"training.epochs=3", "training.early_stopping={metric: log_loss, patience: 1}", "optimizer.rows.learning_rate=0.3", "training.accept_diverged=true"}
	left := partialJob(t, append(slices.Clip(set), "snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			j := partialJob(t, append(slices.Clip(set), "snapshots.remote="+t.TempDir())...)
			killedAfterUpload(t, j, 1+(testjobs.TrainRows+255)/256)
			lose(t, j, i, "new disk")
			s, said := trainAloud(t, j)
			if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryPartial || s.Recoveries[0].LostSamples != 0 || s.Recoveries[0].RowsLost == 0 {
				t.Fatalf("recoveries %+v\n%s", s.Recoveries, said)
			}
			if len(s.Epochs) != 2 || !strings.Contains(said, "best_epoch=1") {
				t.Errorf("it did not go back to the best epoch: the test shows nothing\n%s", said)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			checkOneSnapshot(t, j)
			in, err := inference.Inspect(t.Context(), j.Output.ModelDir, true, testjobs.Quiet)
			if err != nil || len(in.Faults) > 0 || in.Manifest.Epoch != 1 {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}

// TestPartialRecoveryDoesNotPay checks that if the job allows so few lost samples that the uploads
// would cost more than full recovery, the whole run goes back, and the model is that of an
// undisturbed run.
func TestPartialRecoveryDoesNotPay(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	j := partialJob(t, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=auto", "recovery.max_lost_samples=1e-12")
	killedAfterUpload(t, j, 6)
	lose(t, j, 1, "emptied")
	recoversFully(t, j, &want, "partial recovery is not worthwhile")
}

// goesBackWhole trains a job that has lost a directory and must go back as a whole, to the outcome of
// an undisturbed run, and say why.
func recoversFully(t *testing.T, j *configs.Job, want *outcomeOf, why string) {
	t.Helper()
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull || !strings.Contains(said, why) {
		t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
	}
	got := outcome(t, j, s)
	got.compare(t, want)
}

// stoppedAfterUpload trains j and stops it after pass at, which saves and uploads a last
// snapshot. It returns the step of that.
func stoppedAfterUpload(t *testing.T, j *configs.Job, at int) (step int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	opts, passes := quiet, 0
	opts.afterPass = func(_ context.Context, r *run) error {
		if passes++; passes == at {
			step = r.state.Engine.Step
			stop()
		}
		return nil
	}
	if _, err := Train(ctx, j, opts); errkind.Of(ctx, err) != errkind.Interrupted {
		t.Fatalf("it was not stopped: %v", err)
	}
	return step
}

// TestPartialRecovery lets a run lose directories twice. Each time it continues from its own last
// snapshot, with the lost rows as they were in the remote one. The portion of lost samples is that
// of equation 4, adds up, and is in the model, its reports and those of the next night.
func TestPartialRecovery(t *testing.T) {
	j := partialJob(t, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=1000 snapshots", "recovery.max_lost_samples=1")
	killedAfterUpload(t, j, 6)
	lose(t, j, 0, "new disk")
	opts, passes := quiet, 0
	c := newCrash(t, j)
	opts.afterPass = func(_ context.Context, r *run) error {
		r.snapshots.wait()
		if passes++; passes < 9 {
			return nil
		}
		c.now()
		return errCrash
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	c.happened()
	lose(t, j, 1, "emptied")
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 2 {
		t.Fatalf("recoveries %+v\n%s", s.Recoveries, said)
	}
	sum := 0.0
	for i, rec := range s.Recoveries {
		if rec.LostShare <= 0 || rec.LostShare > 1 || rec.RowsLost == 0 || rec.RowsRestored == 0 || rec.Again != 0 {
			t.Errorf("%+v", rec)
		}
		last := int64(256) // the first snapshot, after a pass of 4 mini-batches of 64
		if i == 1 {
			last = s.Recoveries[0].Examples + 256 // the first of the process that went on
		}
		want := float64(rec.Examples-last) / float64(2*testjobs.TrainRows) * rec.LostShare
		most := want
		if rec.Examples < testjobs.TrainRows { // nothing is known of the data after these in the first epoch
			most = float64(rec.Examples-last) / float64(2*rec.Examples) * rec.LostShare
		}
		if rec.LostSamples < 0.999*want || rec.LostSamples > 1.001*most {
			t.Errorf("recovery %d: %v of the samples are lost, want %v: %+v", i, rec.LostSamples, want, rec)
		}
		sum += rec.LostSamples
	}
	if s.LostSamples != sum {
		t.Errorf("%v of the samples are lost, want %v", s.LostSamples, sum)
	}
	for _, text := range []string{"only the rows of the lost directories have gone back", "will not be that of an undisturbed run"} {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q:\n%s", text, said)
		}
	}
	in, err := inference.Inspect(t.Context(), j.Output.ModelDir, false, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	if p := in.Manifest.PartialRecovery; p.Recoveries != 2 || p.LostSamples != sum || p.Inherited {
		t.Errorf("the model says %+v", p)
	}
	lines := strings.Split(strings.TrimSpace(reportOfModel(t, j, report.MetricsName)), "\n")
	var line report.Line
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil || line.LostSamples != sum {
		t.Errorf("the last line of metrics is %s, %v", lines[len(lines)-1], err)
	}
	next := partialJob(t, "training.warm_start="+j.Output.ModelDir)
	train(t, next)
	if in, err = inference.Inspect(t.Context(), next.Output.ModelDir, false, testjobs.Quiet); err != nil || in.Manifest.PartialRecovery != (modeldir.PartialRecovery{Inherited: true}) {
		t.Errorf("the model of the next night says %+v, %v", in.Manifest.PartialRecovery, err)
	}
}

// TestPartialRecoveryBeginsAnew checks that without a remote directory, lost rows get initial
// values.
func TestPartialRecoveryBeginsAnew(t *testing.T) {
	j := partialJob(t, "recovery.max_lost_samples=1")
	killedAfterUpload(t, j, 10)
	lose(t, j, 1, "new disk")
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 1 || s.Recoveries[0].RowsLost == 0 || s.Recoveries[0].RowsRestored != 0 || s.Recoveries[0].LostSamples == 0 || s.Recoveries[0].From != "a new model" {
		t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
	}
}

// TestPartialRecoveryOfAnEmptyDirectory checks that if a lost directory had no rows, the model is
// that of an undisturbed run, and its reports say nothing else. A directory has no rows after a
// user has moved its files into another one.
func TestPartialRecoveryOfAnEmptyDirectory(t *testing.T) {
	set := []string{"sparse_table.memory_bytes=24MiB", "model.embedding_dim=4"}
	left := partialJob(t, append(slices.Clip(set), "snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := partialJob(t, set...)
	killedAfterUpload(t, j, 6)
	moveRows(t, j, 1, 0)
	lose(t, j, 1, "new disk")
	s, said := trainAloud(t, j)
	if len(s.Recoveries) != 0 || len(s.Resumed) != 1 || !strings.Contains(said, "had no rows of the table") {
		t.Errorf("went on at %+v, recoveries %+v\n%s", s.Resumed, s.Recoveries, said)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
	if m := load(t, j.Output.ModelDir); m.Saved.PartialRecovery != (modeldir.PartialRecovery{}) {
		t.Errorf("the model says %+v", m.Saved.PartialRecovery)
	}
}

// moveRows moves the rows of an interrupted run's table from one of its directories into another.
func moveRows(t *testing.T, j *configs.Job, from, to int) {
	t.Helper()
	table := func(i int) string {
		all, err := filepath.Glob(filepath.Join(j.SparseTable.Dirs[i], "*-gen-*"))
		if err != nil || len(all) == 0 {
			t.Fatalf("%s has no table: %v", j.SparseTable.Dirs[i], err)
		}
		return slices.Max(all)
	}
	files, err := sparsetable.FilesIn(table(from))
	if err != nil || len(files.Rows) == 0 {
		t.Fatalf("%s has no rows: %v", table(from), err)
	}
	for _, name := range files.Rows {
		if err := os.Rename(filepath.Join(table(from), name), filepath.Join(table(to), name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostRowsWithoutBuckets checks that rows that were not in a bucket yet count as lost samples,
// too.
func TestLostRowsWithoutBuckets(t *testing.T) {
	j := partialJob(t, "sparse_table.memory_bytes=24MiB", "model.embedding_dim=4", "recovery.max_lost_samples=1")
	killedAfterUpload(t, j, 6)
	lose(t, j, 0, "new disk")
	if s, said := trainAloud(t, j); len(s.Recoveries) != 1 || s.LostSamples < 0.1 {
		t.Errorf("%v of the samples are lost: %+v\n%s", s.LostSamples, s.Recoveries, said)
	}
}

// TestTooManyLostSamples checks that a run that would lose more samples than allowed ends with an
// error that says what to do, and changes nothing. With recovery.mode full, it then makes the model
// of an undisturbed run.
func TestTooManyLostSamples(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	j := partialJob(t, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=1000 snapshots", "recovery.max_lost_samples=0.0001")
	killedAfterUpload(t, j, 14)
	lose(t, j, 1, "new disk")
	for range 2 {
		_, err := Train(t.Context(), j, quiet)
		if at := "has lost " + j.SparseTable.Dirs[1]; err == nil || !strings.Contains(err.Error(), at) {
			t.Fatalf("the error does not say %q: %v", at, err)
		}
		var most *refill.LostSamplesError
		if !errors.As(err, &most) || errkind.Of(t.Context(), err) != errkind.LostData || most.Portion <= most.Most || !strings.Contains(err.Error(), "recovery.mode=full") {
			t.Fatalf("it ended with %v", err)
		}
	}
	j.Recovery.Mode = configs.RecoveryFull
	s := train(t, j)
	if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull || s.Recoveries[0].Step != 4 {
		t.Errorf("recoveries %+v", s.Recoveries)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}

// TestPartialRecoveryFallsBack checks that the whole run goes back if that is impossible for only a
// part of the rows.
func TestPartialRecoveryFallsBack(t *testing.T) {
	for name, set := range map[string][]string{
		"memory": {"sparse_table.memory_bytes=5MiB", "model.embedding_dim=32", "optimizer.rows.learning_rate=0.01"},
		"all":    {}, // directories are lost
		"dead":   {}, // are the disks of all directories that the table has, and the job has another one now
		"best":   {"training.epochs=3", "training.early_stopping={metric: log_loss, patience: 3}", "optimizer.rows.learning_rate=0.3", "training.accept_diverged=true"},
	} {
		t.Run(name, func(t *testing.T) {
			left := partialJob(t, append(slices.Clip(set), "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			j := partialJob(t, append(slices.Clip(set), "snapshots.remote="+t.TempDir())...)
			killedAfterUpload(t, j, 18)
			switch name {
			case "all":
				lose(t, j, 1, "new disk")
				fallthrough
			default:
				lose(t, j, 0, "new disk")
			case "dead":
				dirs := j.SparseTable.Dirs
				diskfault.Inject(func(_, path string) error {
					if disk.Innermost(dirs, path) >= 0 {
						return syscall.EIO
					}
					return nil
				})
				t.Cleanup(func() { diskfault.Inject(nil) })
				j.SparseTable.Dirs = append(slices.Clip(dirs), dirs[0]+"-new")
			}
			s, said := trainAloud(t, j)
			if len(s.Recoveries) != 1 || s.Recoveries[0].Mode != configs.RecoveryFull || !strings.Contains(said, "so the whole run goes back") {
				t.Errorf("recoveries %+v\n%s", s.Recoveries, said)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
		})
	}
}

// TestDiskFailsInPartialRecovery lets another disk fail while the snapshot is restored to it from
// which lost rows are taken. The process ends with an error, and the next one does not use that
// disk, although the files of the recovery there cannot be deleted.
func TestDiskFailsInPartialRecovery(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	j := partialJob(t, "snapshots.remote="+t.TempDir())
	killedAfterUpload(t, j, 18)
	lose(t, j, 0, "new disk")
	var dead atomic.Bool
	diskfault.Inject(func(_, path string) error {
		if disk.Innermost(j.SparseTable.Dirs[1:], path) < 0 {
			return nil
		}
		if in := filepath.Base(path); strings.Contains(path, "refill-gen-") && in != "LOCK" && !strings.HasPrefix(in, "OWNER") {
			dead.Store(true)
		}
		if dead.Load() {
			return syscall.EROFS
		}
		return nil
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	if _, err := Train(t.Context(), j, quiet); errkind.Of(t.Context(), err) != errkind.IO || !dead.Load() {
		t.Fatalf("it ended with %v", err)
	}
	recoversFully(t, j, &want, "cannot be deleted")
}

// TestPartialRecoveryIsDisturbed fails an operation on disk while a run recovers. The process
// goes on or ends with an error, and the next one makes the model of an undisturbed run, since
// nothing was trained between the snapshots.
func TestPartialRecoveryIsDisturbed(t *testing.T) {
	left := partialJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	rng := testseed.Rand(t)
	for range 4 {
		at := 1 + rng.IntN(1+rng.IntN(400))
		j := partialJob(t, "snapshots.remote="+t.TempDir())
		stoppedAfterUpload(t, j, 13)
		lose(t, j, rng.IntN(2), "new disk")
		disk := faultyFrom(at, rng.IntN(2) == 0)
		diskfault.Inject(disk.ask)
		opts := quiet
		opts.afterPass = func(context.Context, *run) error { return errCrash }
		_, err := Train(t.Context(), j, opts)
		diskfault.Inject(nil)
		if err == nil {
			t.Fatal("no pass was trained")
		}
		s, said := trainAloud(t, j)
		got := outcome(t, j, s)
		got.compare(t, &want)
		if t.Failed() {
			t.Fatalf("operation %d failed: %v; then\n%s", at, err, said)
		}
	}
}

// TestPartialRecoveryOfConvertedRows checks that lost rows are not replaced by those of the model
// that the run began with if the latter had to be converted, because of another width, or of
// another optimizer whose state has the same size. The whole run goes back, and makes the model of
// an undisturbed one.
func TestPartialRecoveryOfConvertedRows(t *testing.T) {
	first := partialJob(t, "data.limit=500")
	train(t, first)
	for name, set := range map[string][]string{
		"another width":     {"model.embedding_dim=255"},
		"another optimizer": {"optimizer.rows={kind: ftrl, learning_rate: 0.01}"},
	} {
		t.Run(name, func(t *testing.T) {
			set := append(slices.Clip(set), "training.warm_start="+first.Output.ModelDir, "training.epochs=1", "recovery.max_lost_samples=1")
			left := partialJob(t, append(slices.Clip(set), "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			j := partialJob(t, set...)
			for _, at := range []int{4, 3} { // the second run goes on from a snapshot
				if !killedAt(t, j, at, true) {
					t.Fatal("not killed")
				}
			}
			lose(t, j, 1, "emptied")
			recoversFully(t, j, &want, "were converted")
		})
	}
}
