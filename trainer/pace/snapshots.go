package pace

import (
	"time"

	"aibox/configs"
	"aibox/internal/cores"
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

// Snapshots chooses when snapshots are due: as often as the job says or, if it leaves that open, so
// that they cost little: the share snapshotShare of the time at most.
type Snapshots struct {
	every    configs.SnapshotInterval
	begun    time.Time // the last snapshot, or the run
	passes   int64     // trained since then
	examples int64     // trained in the run until then

	interval time.Duration // of every.Auto, as all that follows
	// share is what the writing in the background costs training, by its time.
	share    float64
	cost     time.Duration // of the last snapshot; 0: there was none
	failures int           // since the last snapshot
	size     func() int64  // bytes that a snapshot of the present state takes
}

// NewSnapshots returns the pace of the snapshots of a job that begins now. size is how many bytes
// one of the present state would take.
func NewSnapshots(job *configs.Job, size func() int64) Snapshots {
	p := Snapshots{
		every: job.Snapshots.Interval(), begun: time.Now(),
		interval: leastSnapshotInterval, share: 1 / float64(cores.Count()), size: size,
	}
	switch {
	case job.SparseTable.Kind == sparsetable.KindSSD: // the devices are written and read for training too
		p.share = max(p.share, 0.5)
	case job.SparseTable.MemoryBytes > 0: // training may wait for the memory of copies
		p.share = 1
	}
	return p
}

// On reports whether there are snapshots.
func (p *Snapshots) On() bool { return p.every != (configs.SnapshotInterval{}) }

// Pass takes note of a pass that was trained.
func (p *Snapshots) Pass() { p.passes++ }

// Began takes note of a snapshot after so many examples.
func (p *Snapshots) Began(now time.Time, examples int64) {
	p.begun, p.passes, p.examples = now, 0, examples
}

// GoOn takes note of the examples that earlier processes of the run have trained.
func (p *Snapshots) GoOn(examples int64) { p.examples = examples }

// Due reports whether a snapshot is due after so many examples.
func (p *Snapshots) Due(now time.Time, examples int64) bool {
	switch since, every := now.Sub(p.begun), p.every; {
	case every.Auto:
		return p.dueAfter(since)
	case every.Time > 0:
		return since >= every.Time
	case every.Examples > 0:
		return examples-p.examples >= every.Examples
	case every.Passes > 0:
		return p.passes >= every.Passes
	}
	return false
}

// dueAfter reports whether a snapshot is due so long after the last one, if the job leaves that
// open. It looks at the size of the table only now and then.
func (p *Snapshots) dueAfter(since time.Duration) bool {
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
