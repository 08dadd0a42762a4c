package cuda_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/model"
)

// TestLikeHost: every model has, after some steps, the losses, logits, parameters and rows that the engine of the host's
// processors gives it, up to rounding errors, on one device and on several.
func TestLikeHost(t *testing.T) {
	seed := testseed.Of(t)
	for name, spec := range model.Examples() {
		s := setup{spec: spec, dense: adam, seed: seed, batches: 4, examples: 37}
		t.Run(name, func(t *testing.T) {
			host := onHost(t, s)
			wantLosses, wantLogits := host.train(t, 0, s.batches)
			host.end(t)
			want := host.values()
			wantInferred := host.infer(t)
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("devices=%d", n), func(t *testing.T) {
					b := onDevices(t, s, n, seed+uint64(n))
					losses, logits := b.train(t, 0, s.batches)
					b.end(t)
					for i := range losses {
						near(t, "loss", []float32{float32(losses[i])}, []float32{float32(wantLosses[i])}, 1e-4)
						near(t, "logits", logits[i], wantLogits[i], 1e-4)
					}
					allNear(t, b.values(), want, 1e-4)
					for i, got := range b.stats() {
						if got != host.stats()[i] {
							t.Fatalf("statistics of row %d: %+v, want %+v", i, got, host.stats()[i])
						}
					}
					for i, got := range b.infer(t) {
						near(t, "inferred logits", got, wantInferred[i], 1e-4)
					}
				})
			}
		})
	}
}
