package trainer

import (
	"context"
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
