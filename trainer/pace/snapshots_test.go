package pace

import (
	"runtime"
	"testing"
	"time"

	"aibox/configs"
)

// TestPace checks that automatic snapshots take less than half a percent of the time, from the
// first one on, and that at least a minute lies between two of them.
func TestPace(t *testing.T) {
	size := int64(0)
	p := Snapshots{interval: leastSnapshotInterval, share: 0.5, size: func() int64 { return size }}
	due := func() time.Duration { // when the next one is, to the second
		for since := time.Duration(0); ; since += time.Second {
			if p.dueAfter(since) {
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
		{"written faster than expected", func() { p.Saved(100*time.Millisecond, 3800*time.Millisecond) }, 400 * time.Second},
		{"it fails", func() { p.Failed() }, 800 * time.Second},
		{"it fails again", func() { p.Failed() }, 1600 * time.Second},
		{"it succeeds at no cost", func() { p.Saved(time.Millisecond, 0) }, time.Minute},
	} {
		c.do()
		if got := due(); got != c.want {
			t.Errorf("%s: due after %v, want %v", c.name, got, c.want)
		}
	}
}

// job is a job with these settings.
func job(t *testing.T, set ...string) *configs.Job {
	t.Helper()
	j, err := configs.Parse("job.yaml", []byte(`
data:
  train: [log.csv]
  format: csv
  columns: [{name: label, role: label}, {name: user}, {name: item}]
model: {kind: fm}
output: {model_dir: model}
`), configs.LoadOptions{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestPaceOfTables checks that snapshots are taken less often if writing them slows training down.
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
		p := NewSnapshots(job(t, c.set...), nil)
		if p.share != c.want {
			t.Errorf("%v: share %v, want %v", c.set, p.share, c.want)
		}
	}
}
