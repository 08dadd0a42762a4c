package ssd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// varySSD chooses the cache policy and the budget, from one under which a random run hardly works
// to one under which reads are merged, and sometimes adds a directory.
func varySSD(rng *rand.Rand, o *sparsetable.Options) {
	s := &o.SSD
	if n := len(s.Dirs); n == 0 || n < 3 && rng.IntN(4) == 0 {
		s.Dirs = append(s.Dirs[:n:n], fmt.Sprintf("/ssd%d", n))
	}
	policies := sparsetable.CachePolicies()
	s.CachePolicy = policies[rng.IntN(len(policies))]
	s.LookaheadPasses = rng.IntN(3)
	s.MaxSpaceAmplification = []float64{1.2, 2, 5}[rng.IntN(3)]
	switch n := rng.IntN(10); {
	case n < 7:
		l := o.Layout
		if l == (sparsetable.Layout{}) {
			panic("no layout")
		}
		o.MemoryBytes = smallest(l, *s, 0) + int64(rng.IntN(120<<10))
	case n < 9:
		o.MemoryBytes = 24 << 20
	default:
		o.MemoryBytes = 160 << 20
	}
}

// runBackgroundSSD does what the background writer does, or what a Pull without room does.
func runBackgroundSSD(ctx context.Context, t sparsetable.Table, rng *rand.Rand) (string, error) {
	switch rng.IntN(3) {
	case 0:
		n := 1 + rng.IntN(1000)
		return fmt.Sprintf("evict %d rows", n), ssd.EvictRows(t, n)
	case 1:
		n := []int{2, 5, 30}[rng.IntN(3)]
		ssd.SetShape(t, n, 2*n, 8*n, 0)
		return fmt.Sprintf("make buckets of %d rows", n), ssd.Reshape(ctx, t)
	}
	file, err := ssd.EmptyAFile(ctx, t, rng)
	return fmt.Sprintf("empty file %d", file), err
}

// TestSSDRandom runs the random sequences with all cache policies, budgets and numbers of
// directories, and checks that the events occur that they are meant to test.
func TestSSDRandom(t *testing.T) {
	k := ssdKind("", 3)
	k.Vary, k.RunBackground = varySSD, runBackgroundSSD
	k.Enough = func(t *testing.T, c tabletest.Counters) {
		for _, n := range []struct {
			what        string
			have, least int64 // per thousand steps
		}{
			{"evictions", c.Evictions, 1500},
			{"slots rewritten", c.FlushedSlots, 200},
			{"slots split", c.Splits, 50},
			{"slots merged", c.Merges, 50},
			{"bytes compacted", c.CompactedBytes, 5000},
			{"hits on rows of other passes", c.HitsInFlight, 1000},
			{"hits on idle rows", c.HitsIdle, 1000},
			{"buckets read", c.BucketReads, 100},
			{"reads saved by merging", c.BucketReads - c.DeviceReads, 5},
			{"reads spared by filters", c.FilterNegatives, 200},
			{"false positives", c.FalsePositives, 1},
			{"rows saved by who was about to change them", c.SavedEarly, 100},
			{"rows expired", c.Expired, 100},
			{"snapshots", c.Snapshots, 20},
			{"crashes", c.Crashes, 10},
			{"flushes", c.Flushes, 5},
			{"pulls refused", c.Refused, 5},
		} {
			if n.have*1000 < n.least*c.Steps {
				t.Errorf("%d %s in %d steps: too few to test anything", n.have, n.what, c.Steps)
			}
		}
		if c.Prefetched == 0 { // a matter of what goroutines get to run
			t.Errorf("no row was read ahead in %d steps", c.Steps)
		}
		if !testing.Short() && c.Compactions == 0 { // small tables have few files
			t.Errorf("Compact has emptied no file in %d steps", c.Steps)
		}
	}
	for _, unit := range []int{512, 4096} {
		t.Run(fmt.Sprintf("units of %d bytes", unit), func(t *testing.T) { tabletest.Random(t, ofUnit(k, 3, unit)) })
	}
}
