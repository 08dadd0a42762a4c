package cuda_test

import (
	"errors"
	"maps"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/internal/testseed"
)

// nested returns how often each range occurs in which other ones, or fails the test if ranges that
// one goroutine has begun do not end in the opposite order.
func nested(t *testing.T, marks []emulated.RangeMark) map[string]int {
	t.Helper()
	counts := map[string]int{}
	var open []emulated.RangeMark
	for _, m := range marks {
		if !m.End {
			open = append(open, m)
			path := ""
			for _, o := range open {
				path += "/" + o.Name
			}
			counts[path]++
			continue
		}
		if len(open) == 0 || open[len(open)-1].Range != m.Range {
			t.Fatalf("range %q ends while %v are open", m.Name, open)
		}
		open = open[:len(open)-1]
	}
	if len(open) > 0 {
		t.Errorf("%v have not ended", open)
	}
	return counts
}

// TestRanges: each step, and each part of it, is a range, also when an operation fails.
func TestRanges(t *testing.T) {
	seed := testseed.Of(t)
	for _, c := range []struct {
		devices int
		norm    bool
		sums    int // of batch normalization
	}{{1, true, 0}, {2, false, 0}, {2, true, 6}} {
		p := platform(c.devices, seed)
		b := newBench(t, setup{spec: deep(c.norm), dense: adam, seed: seed, batches: 6, examples: 12})
		if u := useDevices(t, b, p, c.devices, func() {}); u.err != nil {
			t.Fatal(u.err)
		}
		want := map[string]int{
			"/step": 6, "/step/gather": 6, "/step/pool": 6, "/step/send": 12, "/step/compute": 6, "/step/wait": 6, "/step/update rows": 6,
			"/infer": 6, "/infer/gather": 6, "/infer/pool": 6, "/infer/send": 12, "/infer/compute": 6, "/infer/wait": 5, "/wait": 1,
		}
		if c.devices > 1 {
			want["/step/all-reduce"], want["/step/update"] = 6, 6 // else it is part of what is computed
		}
		if c.sums > 0 {
			want["/step/compute/all-reduce"] = 6 * c.sums
		}
		if got := nested(t, p.Ranges()); !maps.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	for _, fails := range []int{30, 80, 130, 200} {
		p := platform(2, seed)
		b := newBench(t, setup{spec: deep(true), dense: adam, seed: seed, batches: 3, examples: 12})
		p.FailOperation(fails, gpu.ECC)
		var failed *gpu.Error // of either device, which breaks the other one
		if u := useDevices(t, b, p, 2, func() {}); !errors.As(u.err, &failed) {
			t.Fatal(u.err)
		}
		if got := nested(t, p.Ranges()); got["/step"] == 0 {
			t.Errorf("%v", got)
		}
	}
}
