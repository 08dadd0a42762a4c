package trainer

import (
	"runtime"
	"testing"
	"time"

	"aibox/trainer/flow"
)

// TestPace: snapshots that are chosen automatically cost less than half a per cent of the
// time, from the first one on, and a minute lies between two of them at least.
func TestPace(t *testing.T) {
	size := int64(0)
	p := pace{interval: leastSnapshotInterval, share: 0.5, size: func() int64 { return size }}
	due := func() time.Duration { // when the next one is, to the second
		for since := time.Duration(0); ; since += time.Second {
			if p.due(since) {
				return since
			}
		}
	}
	for _, c := range []struct {
		name string
		do   func()
		want time.Duration
	}{
		{"a small table", func() { size = 1e6 }, time.Minute},
		{"a large one", func() { size = 2e9 }, 1000 * time.Second},
		{"written faster than expected", func() { p.saved(100*time.Millisecond, 3800*time.Millisecond) }, 400 * time.Second},
		{"it fails", func() { p.failed() }, 800 * time.Second},
		{"it fails again", func() { p.failed() }, 1600 * time.Second},
		{"it succeeds at no cost", func() { p.saved(time.Millisecond, 0) }, time.Minute},
	} {
		c.do()
		if got := due(); got != c.want {
			t.Errorf("%s: due after %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPaceOfTables: where writing a snapshot gets into the way of training, it counts for more.
func TestPaceOfTables(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, c := range []struct {
		set  []string
		want float64
	}{
		{nil, 0.125},
		{[]string{"sparse_table.memory_bytes=1GiB"}, 1},
		{[]string{"sparse_table.kind=ssd"}, 0.5},
	} {
		p := newPace(&run{job: job(t, "fm", c.set...)})
		if p.share != c.want {
			t.Errorf("%v: share %v, want %v", c.set, p.share, c.want)
		}
	}
}

// TestSpent: what several processes take for an epoch adds up.
func TestSpent(t *testing.T) {
	a := spent{Seconds: 10, Processor: 20, Stages: []StageSummary{{Name: flow.StageRead, Items: 5, BusySeconds: 2, StarvedSeconds: 8, QueueMean: 1, QueueCapacity: 4}}}
	b := spent{Seconds: 30, Processor: 10, Stages: []StageSummary{{Name: flow.StageRead, Items: 7, BusySeconds: 20, BlockedSeconds: 10, QueueMean: 3, QueueCapacity: 4}}}
	sum := a.plus(b)
	if sum.Seconds != 40 || sum.Processor != 30 || len(sum.Stages) != 1 {
		t.Fatalf("%+v", sum)
	}
	if want := (StageSummary{Name: flow.StageRead, Items: 12, BusySeconds: 22, StarvedSeconds: 8, BlockedSeconds: 10, QueueMean: 2.5, QueueCapacity: 4}); sum.Stages[0] != want {
		t.Errorf("%+v, want %+v", sum.Stages[0], want)
	}
	if got := a.plus(spent{Seconds: 1}); len(got.Stages) != 1 || got.Stages[0].Items != 5 {
		t.Errorf("%+v", got)
	}
}
