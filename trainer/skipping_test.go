package trainer

import (
	"context"
	"errors"
	"testing"
)

// TestResumeInLastPart checks that if passes are trained in parts, a job that is resumed before the
// last mini-batch of a pass needs memory only for the rows of that mini-batch, not for those of the
// whole pass.
func TestResumeInLastPart(t *testing.T) {
	set := onSSD("sparse_table.memory_bytes=4600KiB", "model.embedding_dim=128", "model.hidden_layers=[4]", "training.batch_size=50", "pipeline.batches_per_pass=8",
		"data.limit=800", "training.accept_diverged=true", everyPass)
	want := train(t, job(t, "wide_deep", set...))
	j := job(t, "wide_deep", set...)
	c, opts, last := newCrash(t, j), quiet, false
	opts.afterPass = func(_ context.Context, r *run) error {
		if last {
			r.snapshots.wait()
			c.now()
			return errCrash
		}
		last = r.state.Batches-r.state.ReaderBatches == 7
		r.snapshots.wait()
		return nil
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	c.happened()
	if got := train(t, j); got.Digest != want.Digest || len(got.Resumed) != 1 {
		t.Errorf("%s after a crash, %s without one; resumed: %+v", got.Digest, want.Digest, got.Resumed)
	}
}
