package trainer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/internal/disk"
	"aibox/sparsetable"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// TestResumeOfAClone kills runs whose table on SSD is a clone of that of the earlier model,
// after each pass, with and without the snapshot of that pass. The model and the reports are
// those of a run that was left alone, and the table has no snapshot but its own: that which
// was cloned is dropped with the first one of the run.
func TestResumeOfAClone(t *testing.T) {
	first := job(t, "fm", onSSD()...)
	train(t, first)
	set := onSSD("training.warm_start="+first.Output.ModelDir, "sparse_table.dirs=[MODEL-a, MODEL-b]", "pipeline.batches_per_pass=6")
	left := job(t, "fm", append(slices.Clip(set), "snapshots.every=none")...)
	var log bytes.Buffer
	s, err := Train(t.Context(), left, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), " shared_bytes=") {
		t.Fatalf("the table is no clone:\n%s", &log)
	}
	want := outcome(t, left, s)
	whole := job(t, "fm", append(slices.Clip(set), everyPass)...)
	opts := quiet
	opts.afterPass = func(_ context.Context, r *run) error {
		r.snapshots.wait()
		if infos, err := r.table.Snapshots(); err != nil || len(infos) != 1 {
			t.Errorf("after %d passes, the table has %d snapshots, %v", r.state.Passes, len(infos), err)
		}
		return nil
	}
	if _, err := Train(t.Context(), whole, opts); err != nil {
		t.Fatal(err)
	}
	for _, waits := range []bool{true, false} {
		for at := 1; ; at++ {
			j := job(t, "fm", append(slices.Clip(set), everyPass)...)
			if !killedAt(t, j, at, waits) {
				if at < 5 {
					t.Fatalf("only %d passes", at)
				}
				break
			}
			s := train(t, j)
			got := outcome(t, j, s)
			got.compare(t, &want)
			if waits && (len(s.Resumed) == 1) != (at > 1) {
				t.Errorf("killed at pass %d: went on at %+v", at, s.Resumed)
			}
			checkOneSnapshot(t, j)
		}
	}
}

// TestFullCloneGetsSpace checks that if the table, which is a clone, finds no space before the
// first snapshot of the run, the snapshot that was cloned is dropped, and training continues.
func TestFullCloneGetsSpace(t *testing.T) {
	first := job(t, "fm", onSSD()...)
	train(t, first)
	set := onSSD("training.warm_start="+first.Output.ModelDir, "training.epochs=2")
	left := job(t, "fm", append(slices.Clip(set), "snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", append(slices.Clip(set), neverDue)...)
	opts := quiet
	before, after := -1, -1 // snapshots of the table
	count := func(table sparsetable.Table) int {
		infos, err := table.Snapshots()
		if err != nil {
			t.Error(err)
		}
		return len(infos)
	}
	opts.afterPass = func(_ context.Context, r *run) error {
		full, _ := r.table.Table.(*fullTable)
		switch {
		case full == nil && before < 0: // the second epoch pulls from this table
			before = count(r.table.Table)
			r.table.Table = &fullTable{r.table.Table, 1}
		case full != nil && r.state.Epoch == 2:
			after = count(full.Table)
			r.table.Table = full.Table
		}
		return nil
	}
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatal(err)
	}
	if before != 1 || after != 0 || s.Snapshots.Taken != 0 {
		t.Errorf("the table had %d snapshots and has %d; %+v", before, after, s.Snapshots)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
	checkOneSnapshot(t, j)
}

// interruptedNight is a chain of two nights in one directory, whose third one was killed.
func interruptedNight(t *testing.T, set ...string) (c *modelChain, at string) {
	t.Helper()
	c, at = newChain(t, "AT/m", append(set, "pipeline.batches_per_pass=1", "output.keep_generations=3", everyPass)...)
	c.starts("2026-11-17", "")
	c.starts("2026-11-18", at+"/m@1")
	if !killedAt(t, c.job("2026-11-19"), 4, true) {
		t.Fatal("not killed")
	}
	return c, at
}

// manifestOfNight is the manifest of the model of a directory, without what no two runs have
// in common.
func manifestOfNight(t *testing.T, dir string) modeldir.Manifest {
	t.Helper()
	m, err := modeldir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.SavedAt, m.TableSnapshot, m.JobSHA256, m.AiboxVersion = "", 0, "", ""
	m.ID, m.StartedFrom.Identity = "", "" // random
	return m.Manifest
}

// TestInterruptedNight checks that an interrupted night is resumed from the model that it has
// started from, even if that model was deleted meanwhile. Its manifest is that of a night without
// interruption.
func TestInterruptedNight(t *testing.T) {
	for _, set := range [][]string{nil, onSSD()} {
		left, at := newChain(t, "AT/m", append(set, "pipeline.batches_per_pass=1", "output.keep_generations=3", "snapshots.every=none")...)
		left.starts("2026-11-17", "")
		left.starts("2026-11-18", at+"/m@1")
		left.starts("2026-11-19", at+"/m@2")
		want := manifestOfNight(t, at+"/m")
		wantDigest := testjobs.Digest(t, left.job("2026-11-19"))
		for name, meanwhile := range map[string]func(m string){
			"left alone": func(string) {},
			"its start is deleted": func(m string) {
				if err := os.RemoveAll(filepath.Join(m, "gen-000002")); err != nil {
					t.Fatal(err)
				}
			},
			"all models are deleted": func(m string) {
				for _, name := range []string{"gen-000001", "gen-000002", "MODEL.json"} {
					if err := os.RemoveAll(filepath.Join(m, name)); err != nil {
						t.Fatal(err)
					}
				}
			},
			"the night before was published again": func(m string) {
				for _, n := range []int{1, 2} {
					if _, err := modeldir.Rollback(m, n); err != nil {
						t.Fatal(err)
					}
				}
			},
		} {
			c, at := interruptedNight(t, set...)
			meanwhile(at + "/m")
			s := c.starts("2026-11-19", at+"/m@2", "output.keep_generations=2", "snapshots.every=2 passes")
			if len(s.Resumed) != 1 {
				t.Errorf("%s: it did not go on:\n%s", name, &c.log)
			}
			if have := manifestOfNight(t, at+"/m"); have != want {
				t.Errorf("%s: the manifest is\n%+v, want\n%+v", name, have, want)
			}
			if have := testjobs.Digest(t, c.job("2026-11-19")); have != wantDigest {
				t.Errorf("%s: digest %s, want %s", name, have, wantDigest)
			}
		}
	}
}

// TestInterruptedNightWithoutItsStart checks that a night does not start over because an older
// model is now the newest one, after the model that it has started from was deleted.
func TestInterruptedNightWithoutItsStart(t *testing.T) {
	c, at := newChain(t, "AT/{{date}}", "pipeline.batches_per_pass=1", everyPass)
	c.starts("2026-11-17", "")
	c.starts("2026-11-18", at+"/2026-11-17@1")
	if !killedAt(t, c.job("2026-11-19"), 4, true) {
		t.Fatal("not killed")
	}
	if err := os.RemoveAll(at + "/2026-11-18"); err != nil {
		t.Fatal(err)
	}
	if s := c.starts("2026-11-19", at+"/2026-11-18@1"); len(s.Resumed) != 1 {
		t.Errorf("it did not go on:\n%s", &c.log)
	}
	if m := manifestOfNight(t, at+"/2026-11-19"); m.StartedFrom != (modeldir.Origin{ModelDir: disk.RealDir(at) + "/2026-11-18", Generation: "gen-000001"}) {
		t.Errorf("%+v", m)
	}
}

// TestInterruptedNightStartsOver checks that if another model was published since, a night starts
// over from that one, and the log names both.
func TestInterruptedNightStartsOver(t *testing.T) {
	c, at := interruptedNight(t)
	if _, err := modeldir.Rollback(at+"/m", 1); err != nil {
		t.Fatal(err)
	}
	if s := c.starts("2026-11-19", at+"/m@1"); len(s.Resumed) > 0 {
		t.Errorf("it went on at %+v", s.Resumed)
	}
	c.said("training starts over", "training.warm_start: it now means "+at+"/m@1, but the interrupted run started from "+at+"/m@2")

	// So it does where the manifest of the model that it went back from is damaged: that is not deleted.
	c, at = interruptedNight(t)
	if _, err := modeldir.Rollback(at+"/m", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at+"/m/gen-000002/MODEL.json", []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := c.starts("2026-11-19", at+"/m@1"); len(s.Resumed) > 0 {
		t.Errorf("with a damaged manifest, it went on at %+v", s.Resumed)
	}

	// Of each night there is a directory, and one that was missing is trained.
	c, at = newChain(t, "AT/{{date}}", "pipeline.batches_per_pass=1", everyPass)
	c.starts("2026-11-17", "")
	if !killedAt(t, c.job("2026-11-19"), 4, true) {
		t.Fatal("not killed")
	}
	c.starts("2026-11-18", at+"/2026-11-17@1")
	if s := c.starts("2026-11-19", at+"/2026-11-18@1"); len(s.Resumed) > 0 {
		t.Errorf("it went on at %+v", s.Resumed)
	}

	// The first night began with a new model, and an earlier one is trained.
	c, at = newChain(t, "AT/{{date}}", "pipeline.batches_per_pass=1", everyPass)
	if !killedAt(t, c.job("2026-11-19"), 4, true) {
		t.Fatal("not killed")
	}
	c.starts("2026-11-18", "")
	if s := c.starts("2026-11-19", at+"/2026-11-18@1"); len(s.Resumed) > 0 {
		t.Errorf("it went on at %+v", s.Resumed)
	}
	c.said("the interrupted run started from a new model")
}

// TestWaitingRunGoesOn checks that a run that waits until another one has released the model
// directory resumes that one if it was interrupted meanwhile.
func TestWaitingRunGoesOn(t *testing.T) {
	left := job(t, "fm", everyPass)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", everyPass)
	waits := make(chan struct{})
	trained := make(chan *report.Summary)
	opts, passes := quiet, 0
	opts.afterPass = func(_ context.Context, r *run) error {
		if passes++; passes < 4 {
			return nil
		}
		r.snapshots.wait()
		go func() {
			defer close(trained)
			second := quiet
			second.WaitUntil = time.Now().Add(10 * time.Hour)
			second.Logger = slog.New(cancelling{quiet.Logger.Handler(), "another run is writing the model directory; waiting until it ends", sync.OnceFunc(func() { close(waits) })})
			s, err := Train(t.Context(), j, second)
			if err != nil {
				t.Error(err)
			}
			trained <- s
		}()
		select {
		case <-waits:
		case <-trained: // it has not waited
		}
		return errCrash
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	s := <-trained
	if s == nil || len(s.Resumed) != 1 {
		t.Fatalf("it did not go on: %+v", s)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}
