package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
	"aibox/trainer/program"
)

// TestRandomJobsFail checks that whatever call or operation of a random job fails, and however, the
// results until then are right. All results are right if only memory was refused that the job does
// not strictly need.
func TestRandomJobsFail(t *testing.T) {
	seed := testseed.Of(t)
	jobs, faults := 10, 10
	if testing.Short() {
		jobs, faults = 4, 6
	}
	for i := range jobs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s, n, numbers := randomCalmJob(rng)
			s.held, s.fails = rng.IntN(4) > 0, true
			logSetup(t, &s, numbers)
			p := platform(8, rng.Uint64())
			want, _, _, err := nightOnPlatform(t, s, n, numbers, p)
			if errors.Is(err, program.ErrNotFinite) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			calls, operations := p.Calls(), p.Operations()
			for range faults {
				kind := draw(rng, gpu.OutOfMemory, gpu.LaunchFailed, gpu.DeviceLost, gpu.ECC)
				p := platform(8, rng.Uint64())
				what, at := "call", 1+rng.IntN(calls)
				if p.FailCall(at, kind); kind != gpu.OutOfMemory && rng.IntN(2) == 0 {
					p.FailCall(0, 0)
					what, at = "operation", 1+rng.IntN(operations)
					p.FailOperation(at, kind)
				}
				got, _, _, err := nightOnPlatform(t, s, n, numbers, p)
				if err == nil {
					reached := what == "call" && at <= p.Calls() || what == "operation" && at <= p.Operations()
					if kind != gpu.OutOfMemory && reached {
						t.Fatalf("%s %d failed with %v, which nobody has noticed", what, at, kind)
					}
					sameNight(t, got, want)
					continue
				}
				if !errors.As(err, new(*gpu.Error)) {
					t.Fatalf("%s %d failed with %v: %v", what, at, kind, err)
				}
				sameNight(t, got, want[:len(got)])
			}
		})
	}
}

// TestRandomJobsShortOfMemory checks that with however little memory of devices, or pinned memory,
// a random job gives the same results, or ends with an error that says that there is too little.
func TestRandomJobsShortOfMemory(t *testing.T) {
	seed := testseed.Of(t)
	jobs, sizes := 8, 10
	if testing.Short() {
		jobs, sizes = 3, 5
	}
	for i := range jobs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s, _, numbers := randomCalmJob(rng)
			n := randomNight(rng, s, 4, 3000)
			for _, p := range n.passes {
				for k := range p.Batches {
					other := s
					other.examples *= draw(rng, 1, 1, 4)
					p.Batches[k] = randomBatch(rng, other, min(300, len(p.Keys)))
				}
			}
			s.held = true
			logSetup(t, &s, numbers)
			night := func(bytes, pinned int64) ([]entry, int64, error) {
				o := optionsOf(8, bytes, 16<<10, rng.Uint64())
				o.PinnedBytes = pinned
				log, _, peak, err := nightOnPlatform(t, s, n, numbers, emulated.New(o))
				return log, peak, err
			}
			want, peak, err := night(1<<30, 0)
			if errors.Is(err, program.ErrNotFinite) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for range sizes {
				share := 0.3 + 0.8*rng.Float64()
				bytes, pinned := int64(2*float64(peak)*share), int64(0) // of which two of the devices may be one
				if rng.IntN(4) == 0 {
					bytes, pinned = 1<<30, bytes
				}
				got, _, err := night(bytes, pinned)
				if err != nil && !errors.Is(err, gpu.OutOfMemory) {
					t.Fatalf("%d bytes, %d pinned: %v", bytes, pinned, err)
				}
				if err == nil {
					sameNight(t, got, want)
				} else {
					sameNight(t, got, want[:len(got)])
				}
			}
		})
	}
}
