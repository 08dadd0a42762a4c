package cuda_test

import (
	"fmt"
	"testing"
	"time"

	"aibox/internal/testseed"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/model"
)

// TestBuckets checks that all models have the same bits, however the gradients are divided for the
// sums over the devices.
func TestBuckets(t *testing.T) {
	seed := testseed.Of(t)
	specs := model.Examples()
	specs["norm"] = deep(true)
	for name, spec := range specs {
		for i, n := range []int{2, 3, 8} {
			if testing.Short() && n != 3 {
				continue
			}
			t.Run(fmt.Sprintf("%s on %d", name, n), func(t *testing.T) {
				s := setup{spec: spec, dense: adam, held: (len(name)+i)%2 == 0, seed: seed, batches: 6, examples: 17}
				var want map[string][]float32
				for _, bytes := range []int{1 << 30, []int{1, 600, 1}[i]} {
					cuda.SetBucketBytes(t, bytes)
					b := onDevices(t, s, n, seed+uint64(bytes))
					b.train(t, 0, s.batches)
					b.end(t)
					if want == nil {
						want = b.values()
					}
					sameBits(t, b.values(), want)
				}
			})
		}
	}
}

// TestBucketsOverlap checks that the sums of all buckets but the last are in another stream than
// the computation, and that they count in the bytes and the time of sums.
func TestBucketsOverlap(t *testing.T) {
	seed := testseed.Of(t)
	for _, norm := range []bool{false, true} {
		s := setup{spec: deep(norm), dense: adam, seed: seed, batches: 8, examples: 24}
		var sent int64
		for _, bytes := range []int{1 << 30, 1} {
			cuda.SetBucketBytes(t, bytes)
			b := newBench(t, s)
			p := nothing{new(calls)}
			e := b.open(t, p, devices(2))
			b.begin(t)
			b.trainFirst(t, 1)
			beside, all := p.calls.beside, p.calls.sums
			// A layer has its weights and its bias at once, and a normalization both of its
			// parameters at about the same time.
			if one := bytes > 1; all-beside != b.sums() || one != (beside == 0) || !one && beside < len(s.spec.HiddenLayers) {
				t.Errorf("norm %v, buckets of %d bytes: %d sums, %d of them beside what is computed", norm, bytes, all, beside)
			}
			d := onDevices(t, s, 2, seed)
			d.trainFirst(t, s.batches)
			d.end(t)
			stats := d.engine.(*cuda.Engine).Stats()[0]
			if least := time.Duration(2*all) * time.Microsecond; stats.SampledSteps != 1 || stats.Sum() < least {
				t.Errorf("norm %v, buckets of %d bytes: %v for %d sums of %d steps, want at least %v", norm, bytes, stats.Sum(), all, stats.SampledSteps, least)
			}
			if sent == 0 {
				sent = stats.BetweenBytes
			}
			if stats.BetweenBytes != sent {
				t.Errorf("norm %v, buckets of %d bytes: %d bytes were sent, otherwise %d", norm, bytes, stats.BetweenBytes, sent)
			}
			for range 3 {
				b.trainFirst(t, s.batches)
			}
			before := p.calls.launches
			if err := e.Train(engine.Batch{Batch: &b.pass.Batches[0]}, func(*engine.Result) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if p.calls.launches != before {
				t.Errorf("norm %v, buckets of %d bytes: kernels are launched one by one", norm, bytes)
			}
		}
	}
}
