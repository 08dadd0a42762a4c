package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/trainer/report"
)

// TestDevicesPasses checks that however passes with rows on devices follow one another, a job makes
// the same model and reports as with rows in the memory of the host: with passes of any size,
// queues of any length, a table with room for some passes, devices with room for one, snapshots,
// and runs that are stopped or crash and are then resumed.
func TestDevicesPasses(t *testing.T) {
	seed := testseed.Of(t)
	runs := 3
	if testing.Short() {
		runs = 1
	}
	for i := range runs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		kind := []string{"wide_deep", "deepfm"}[i%2]
		numbers := []string{"[0]", "[0, 1]", "[0, 1, 2]"}[rng.IntN(3)]
		model := append(slices.Clip(extras[kind]), "engine.kind=cuda", "engine.devices="+numbers, "training.epochs=2", "training.max_examples=1000", "data.limit=600",
			"training.batch_size=50", "training.accept_diverged=true", "model.embedding_dim=128", "model.hidden_layers=[4]")
		set := append(model, "engine.embeddings=device", fmt.Sprintf("pipeline={batches_per_pass: %d, pull_queue: %d, read_queue: %d}", 1+rng.IntN(5), 1+rng.IntN(3), 1+rng.IntN(3)),
			fmt.Sprintf("snapshots.every=%d passes", 1+rng.IntN(3)))
		if rng.IntN(3) > 0 {
			set = append(set, "sparse_table.kind=ssd", fmt.Sprintf("sparse_table.memory_bytes=%dKiB", 4400+rng.IntN(2000)))
		}
		bytes := int64(64 << 20)
		if rng.IntN(3) == 0 {
			bytes = 4<<20 + rng.Int64N(2<<20)
		}
		t.Run(fmt.Sprint(i, kind), func(t *testing.T) {
			t.Log(set, bytes)
			j := job(t, kind, model...)
			s, err := trainOn(t, j, devices(seed, 3), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := outcome(t, j, s)
			j = job(t, kind, set...)
			got := outcome(t, j, trainInterrupted(t, j, rng, bytes))
			got.compare(t, &want)
		})
	}
}

// trainInterrupted trains a job on small devices. Some runs are stopped, at any time, and some
// crash.
func trainInterrupted(t *testing.T, j *configs.Job, rng *rand.Rand, bytes int64) *report.Summary {
	t.Helper()
	for left := 6; ; left-- {
		var log strings.Builder
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c, passes, at := newCrash(t, j), 0, 1+rng.IntN(1+20/j.Pipeline.BatchesPerPass)
		stops, waits := rng.IntN(2) == 0, rng.IntN(2) == 0
		if left > 0 && rng.IntN(3) == 0 {
			at = math.MaxInt
			time.AfterFunc(time.Duration(rng.IntN(500))*time.Millisecond, stop)
		}
		p, o := smallDevices(rng.Uint64(), 3, bytes), quiet
		o.Logger, o.platform = slog.New(slog.NewTextHandler(&log, nil)), p
		o.afterPass = func(_ context.Context, r *run) error {
			if passes++; passes < at || left == 0 {
				return nil
			}
			if stops {
				stop()
				return nil
			}
			if waits {
				r.snapshots.wait()
			}
			c.now()
			return errCrash
		}
		s, err := Train(ctx, j, o)
		if err := p.Err(); err != nil {
			t.Fatal(err)
		}
		switch {
		case err == nil:
			return s
		case errors.Is(err, errCrash):
			c.happened()
		case errkind.Of(ctx, err) != errkind.Interrupted:
			t.Fatalf("%v\n%s", err, log.String())
		}
	}
}
