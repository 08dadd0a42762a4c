package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"aibox/configs"
	"aibox/internal/diskfault"
	"aibox/internal/testseed"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/generations"
	"aibox/trainer/report"
)

// savedStep is a step that trains a job, and waits after each pass until what is saved by then is
// where it belongs.
func savedStep(t *testing.T, j *configs.Job) nightStep {
	t.Helper()
	s := nightStep{Do: "train", File: filepath.Join(t.TempDir(), "job.yaml"), Waits: true}
	f, err := os.Create(s.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := j.Show(f); err != nil {
		t.Fatal(err)
	}
	return s
}

// savesIn are the steps of the newest snapshot and of the newest priority save in a job's
// snapshots.remote; 0: there is none.
func savesIn(t *testing.T, j *configs.Job) (snapshot, save int64) {
	t.Helper()
	all, _, err := generations.ListRemote(t.Context(), new(configs.Job), j.Snapshots.Remote, quiet.Logger)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		if g.State == generations.PriorityRows {
			save = max(save, g.Steps)
		} else {
			snapshot = max(snapshot, g.Steps)
		}
	}
	return snapshot, save
}

// TestPrioritySavesAreKilled kills a process that saves rows by priority before one of its
// operations, mostly one of those on snapshots.remote: uploads of saves, and what these delete.
// Left alone, the next process goes on and makes the model of an undisturbed run. If a directory is lost
// meanwhile, its rows go back to the saves that are complete, and to no others. In the end nothing
// is left of any of it.
func TestPrioritySavesAreKilled(t *testing.T) {
	short := []string{"training.epochs=1"}
	left := partialJob(t, append(short, "snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	prepare := func(t *testing.T, kind string) (*configs.Job, nightStep) {
		j := priorityJob(t, kind, short...)
		return j, savedStep(t, j)
	}
	j, s := prepare(t, priorityKinds[0])
	all, there := &faultyDisk{on: true, fails: func(int) error { return nil }}, new(atomic.Int64)
	diskfault.Inject(func(op, path string) error {
		if strings.HasPrefix(path, j.Snapshots.Remote) {
			there.Add(1)
		}
		return all.ask(op, path)
	})
	err := s.run(t.Context(), all, quiet.Logger)
	diskfault.Inject(nil)
	if err != nil || there.Load() < 100 {
		t.Fatalf("%d operations, of which %d are on the remote directory, %v", all.count, there.Load(), err)
	}
	for n := range tabletest.Kills(t, 5, 2) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rng := testseed.Rand(t)
			kind := one(rng, priorityKinds...)
			j, s := prepare(t, kind)
			within, at := j.Snapshots.Remote, 1+rng.IntN(int(there.Load()))
			if rng.IntN(4) == 0 {
				within, at = "", 1+rng.IntN(all.count)
			}
			done, _ := s.diesWithin(t, within, at) // done: this run has fewer operations
			snapshot, save := savesIn(t, j)
			loses := snapshot > 0 && rng.IntN(2) == 0
			if loses {
				lose(t, j, rng.IntN(2), one(rng, "not mounted", "new disk", "emptied"))
			}
			sum, said := trainAloud(t, j)
			t.Logf("%s, killed at operation %d, of all: %v, too late: %v; the newest snapshot is of step %d, the newest save of %d; a directory is lost: %v; went on at %+v, %+v",
				kind, at, within == "", done, snapshot, save, loses, sum.Resumed, sum.Recoveries)
			if len(sum.Resumed) == 0 && snapshot > 0 {
				t.Errorf("it has not gone on\n%s", said)
			}
			var rec report.Recovery
			if len(sum.Recoveries) > 0 {
				rec = sum.Recoveries[0]
			}
			if p := sum.Snapshots.Priority; p == nil || p.Failed > 0 || strings.Contains(said, "are restored from older ones") {
				t.Errorf("saves %+v\n%s", p, said)
			}
			if byPriority := save > snapshot && rec.Mode == configs.RecoveryPartial; byPriority != (rec.RowsByPriority > 0) {
				t.Errorf("%+v\n%s", rec, said)
			}
			if rec.RowsLost == 0 {
				got := outcome(t, j, sum)
				got.compare(t, &want)
			}
			names, _ := remoteFiles(t, j.Snapshots.Remote)
			if len(names) == 1 && strings.HasPrefix(filepath.Base(names[0]), ".") {
				// It was being written. The next file that is put beside it removes it.
				if err := s.run(t.Context(), nil, quiet.Logger); err != nil {
					t.Fatal(err)
				}
				names, _ = remoteFiles(t, j.Snapshots.Remote)
			}
			if len(names) > 0 {
				t.Errorf("left: %v", names)
			}
		})
	}
}
