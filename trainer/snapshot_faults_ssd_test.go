package trainer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/report"
)

// ssdJob is a job whose table on SSD is some times as large as its cache, and which saves
// each pass.
func ssdJob(t *testing.T, set ...string) *configs.Job {
	return job(t, "fm", append([]string{
		"sparse_table.kind=ssd", "sparse_table.memory_bytes=8MiB", "sparse_table.dirs=[MODEL-a, MODEL-b]",
		"model.embedding_dim=32", "pipeline.batches_per_pass=8", "training.epochs=2",
	}, set...)...)
}

// faultyFrom is a disk whose operation number from fails; with ever, all later ones too.
func faultyFrom(from int, ever bool) *faultyDisk {
	return &faultyDisk{fails: func(n int) error {
		if n == from || ever && n > from {
			return errDisk
		}
		return nil
	}}
}

// someOperations are numbers of operations that are to fail: the first one, and others up to
// most. Small ones are as likely as large ones.
func someOperations(t *testing.T, rng *rand.Rand, most int) []int {
	numbers := []int{1}
	for range tabletest.Kills(t, 12, 4) {
		numbers = append(numbers, 1+rng.IntN(1+rng.IntN(most)))
	}
	return numbers
}

// afterFaults checks how a run ended whose disk was faulty: with its model, or with an error
// that says why. In the latter case it goes on without faults.
func afterFaults(t *testing.T, j *configs.Job, s *report.Summary, err error) *report.Summary {
	t.Helper()
	if err == nil {
		return s
	}
	if kind := errkind.Of(t.Context(), err); !errors.Is(err, errDisk) || kind != errkind.IO {
		t.Errorf("it ended with the kind %v: %v", kind, err)
	}
	_, none := os.Stat(filepath.Join(j.Output.ModelDir, "MODEL.json"))
	var said bytes.Buffer
	s, err2 := Train(t.Context(), j, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err2 != nil {
		t.Fatalf("after %v: %v", err, err2)
	}
	if none != nil && len(s.Resumed) == 0 {
		t.Errorf("it started over after %v:\n%s", err, &said)
	}
	return s
}

// TestOperationsOnSSDFail fails operations on disk of a run whose table is on SSD, one or all
// from one on, from its second snapshot to its end. Training goes on, or ends with an error
// that says why, and the next process makes the same model and reports.
func TestOperationsOnSSDFail(t *testing.T) {
	left := ssdJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	rng := testseed.Rand(t)
	run := func(j *configs.Job, disk *faultyDisk) (*report.Summary, error) {
		opts, passes := quiet, 0
		opts.afterPass = func(_ context.Context, r *run) error {
			if passes++; passes == 2 {
				r.snapshots.wait() // so that there is a snapshot before the faults
				disk.turn(true)
			}
			return nil
		}
		disk.inject(t, &opts)
		defer diskfault.Inject(nil)
		return Train(t.Context(), j, opts)
	}
	whole := faultyFrom(0, false)
	if _, err := run(ssdJob(t, everyPass), whole); err != nil {
		t.Fatal(err)
	}
	for _, ever := range []bool{false, true} {
		failed := 0
		for _, n := range someOperations(t, rng, whole.count) {
			j := ssdJob(t, everyPass)
			s, err := run(j, faultyFrom(n, ever))
			if err != nil {
				failed++
			}
			s = afterFaults(t, j, s, err)
			got := outcome(t, j, s)
			got.compare(t, &want)
			if err != nil { // else, the one before may be left because it could not be deleted
				checkOneSnapshot(t, j)
			}
		}
		if ever && failed == 0 {
			t.Error("no run has failed")
		}
	}
}

// TestOperationsOnSSDFailWhileGoingOn fails operations on disk of a process that goes on with
// such a run.
func TestOperationsOnSSDFailWhileGoingOn(t *testing.T) {
	left := ssdJob(t, "snapshots.every=none")
	want := outcome(t, left, train(t, left))
	rng := testseed.Rand(t)
	run := func(disk *faultyDisk) (*configs.Job, *report.Summary, error) {
		j := ssdJob(t, everyPass)
		if !killedAt(t, j, 4, true) {
			t.Fatal("not killed")
		}
		opts := quiet
		disk.inject(t, &opts)
		defer diskfault.Inject(nil)
		s, err := Train(t.Context(), j, opts)
		return j, s, err
	}
	whole := faultyFrom(0, false)
	whole.on = true
	if _, _, err := run(whole); err != nil {
		t.Fatal(err)
	}
	for _, ever := range []bool{false, true} {
		for _, n := range someOperations(t, rng, whole.count) {
			disk := faultyFrom(n, ever)
			disk.on = true
			j, s, err := run(disk)
			s = afterFaults(t, j, s, err)
			got := outcome(t, j, s)
			got.compare(t, &want)
			if err != nil { // else, the one before may be left because it could not be deleted
				checkOneSnapshot(t, j)
			}
		}
	}
}
