package trainer

import (
	"context"
	"os"
	"testing"
)

// TestUploadsFewer: of the snapshots of a run, the first is uploaded, then every third, and,
// when the run is told to stop, the last one, from which another machine goes on.
func TestUploadsFewer(t *testing.T) {
	set := onSSD("pipeline.batches_per_pass=4", "training.epochs=2")
	left := job(t, "fm", set...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", append(set, everyPass, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=3 snapshots")...)
	ctx, stop := context.WithCancel(t.Context())
	opts := quiet
	passes, last := 0, int64(0)
	var steps []int64 // that were uploaded
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		if s := r.snapshots.uploads.Summary(); s.Step > 0 && (len(steps) == 0 || steps[len(steps)-1] != s.Step) {
			steps = append(steps, s.Step)
		}
		last = r.state.Engine.Step
		if passes++; passes == 9 {
			stop()
		}
		return nil
	}
	if _, err := Train(ctx, j, opts); err == nil {
		t.Fatal("it was not stopped")
	}
	if len(steps) != 3 || steps[0] != 4 || steps[1] != 16 || steps[2] != 28 {
		t.Errorf("the snapshots of these steps were uploaded: %v", steps)
	}
	lost(t, j)
	s := train(t, j)
	if len(s.Resumed) != 1 || s.Resumed[0].Step != last {
		t.Errorf("went on at %+v, but was stopped at %d", s.Resumed, last)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}

// TestUploadNotHandedOver: a snapshot whose files cannot be opened for its upload is told in the
// summary, and the next one is uploaded though it would not be its turn; if it is the last one,
// that very snapshot is tried once more.
func TestUploadNotHandedOver(t *testing.T) {
	j := job(t, "fm", onSSD("pipeline.batches_per_pass=4", "training.epochs=2", everyPass, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=3 snapshots")...)
	ctx, stop := context.WithCancel(t.Context())
	opts := quiet
	var failing []string // what cannot be opened
	away := func(hide bool) {
		for _, path := range failing {
			from, to := path, path+".away"
			if !hide {
				from, to = to, from
			}
			if err := os.Rename(from, to); err != nil {
				t.Error(err)
			}
		}
	}
	opts.atStage = func(stage string) {
		switch stage {
		case stageCommitted: // the snapshot is handed over now
			away(true)
		case stageDropped:
			away(false)
		}
	}
	passes, last := 0, int64(0)
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		r.snapshots.uploads.Finish(ctx)
		passes++
		failing = nil
		switch s := r.snapshots.uploads.Summary(); passes {
		case 4: // it is the turn of the snapshot after this pass
			failing = []string{r.models.writer.Report("metrics.jsonl")}
		case 5:
			if s.Step != 4 || s.Failed != 1 || s.Error == "" {
				t.Errorf("after a snapshot that could not be handed over: %+v", s)
			}
		case 6:
			if s.Step != 20 || s.Failed != 1 || s.Error != "" {
				t.Errorf("after the next snapshot: %+v", s)
			}
		case 8: // the snapshot after this pass is the last, and it is its turn
			failing = []string{r.models.writer.Report("metrics.jsonl")}
			last = r.state.Engine.Step
			stop()
		}
		return nil
	}
	if _, err := Train(ctx, j, opts); err == nil {
		t.Fatal("it was not stopped")
	}
	lost(t, j)
	if s := train(t, j); len(s.Resumed) != 1 || s.Resumed[0].Step != last {
		t.Errorf("went on at %+v, but was stopped at %d", s.Resumed, last)
	}
}
