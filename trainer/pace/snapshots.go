package pace

import (
	"runtime"
	"time"

	"aibox/configs"
	"aibox/sparsetable"
)

const (
	// leastSnapshotInterval is the shortest interval that is chosen automatically.
	leastSnapshotInterval = time.Minute
	// snapshotShare is the share of the time that snapshots may cost then.
	snapshotShare = 0.005
	// snapshotBytesPerSecond is how fast the first snapshot is taken to be written. Most SSDs
	// are faster; what the first one took is known after it.
	snapshotBytesPerSecond = 200e6
	// mostDoublings bounds how much rarer snapshots become that fail.
	mostDoublings = 6
)

// Snapshots chooses when snapshots are due so that they cost little: the share snapshotShare of
// the time at most.
type Snapshots struct {
	interval time.Duration
	// share is what the writing in the background costs training, by its time.
	share    float64
	cost     time.Duration // of the last snapshot; 0: there was none
	failures int           // since then
	size     func() int64  // bytes that a snapshot of the present state takes
}

// NewSnapshots returns the pace of a job's snapshots. size is how many bytes one of the present state would take.
func NewSnapshots(job *configs.Job, size func() int64) Snapshots {
	p := Snapshots{interval: leastSnapshotInterval, share: 1 / float64(runtime.GOMAXPROCS(0)), size: size}
	switch {
	case job.SparseTable.Kind == sparsetable.KindSSD: // the devices are written and read for training too
		p.share = max(p.share, 0.5)
	case job.SparseTable.MemoryBytes > 0: // training may wait for the memory of copies
		p.share = 1
	}
	return p
}

// Due reports whether a snapshot is due so long after the last one. It looks at the size of
// the table only now and then.
func (p *Snapshots) Due(since time.Duration) bool {
	if since < p.interval {
		return false
	}
	p.interval = p.next()
	return since >= p.interval
}

// next is the interval that suits the present state.
func (p *Snapshots) next() time.Duration {
	cost := p.cost.Seconds()
	if cost == 0 {
		cost = p.share * float64(p.size()) / snapshotBytesPerSecond
	}
	interval := max(leastSnapshotInterval, time.Duration(cost/snapshotShare*float64(time.Second)))
	return interval << min(p.failures, mostDoublings)
}

// Saved takes note of a snapshot for which training waited so long, and whose writing took
// so long.
func (p *Snapshots) Saved(stall, took time.Duration) {
	p.cost, p.failures = stall+time.Duration(p.share*float64(took)), 0
	p.interval = leastSnapshotInterval
}

// Failed takes note of a snapshot that failed.
func (p *Snapshots) Failed() {
	p.failures++
	p.interval = leastSnapshotInterval
}
