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
	// snapshotShare is the share of the time that snapshots may then cost.
	snapshotShare = 0.005
	// snapshotBytesPerSecond is the assumed speed of writing the first snapshot; most SSDs are
	// faster. After that, its measured cost is used.
	snapshotBytesPerSecond = 200e6
	// mostDoublings bounds how much rarer failing snapshots become.
	mostDoublings = 6
)

// Snapshots decides when snapshots are due: as often as the job says or, if it leaves that open, so
// that they cost at most snapshotShare of the time.
type Snapshots struct {
	every    configs.SnapshotInterval
	begun    time.Time // start of the last snapshot, or of the run
	passes   int64     // trained since then
	examples int64     // trained by the run until then

	interval time.Duration // of every.Auto, as are all fields below
	// share is what background writing costs training, as a share of its time.
	share    float64
	cost     time.Duration // of the last snapshot; 0 if there was none
	failures int           // since the last snapshot
	size     func() int64  // bytes of a snapshot of the current state
}

// NewSnapshots returns the pace of the snapshots of a job that begins now. size returns the number
// of bytes of a snapshot of the current state.
func NewSnapshots(job *configs.Job, size func() int64) Snapshots {
	p := Snapshots{
		every: job.Snapshots.Interval(), begun: time.Now(),
		interval: leastSnapshotInterval, share: 1 / float64(cores.Count()), size: size,
	}
	switch {
	case job.SparseTable.Kind == sparsetable.KindSSD: // training reads and writes the devices, too
		p.share = max(p.share, 0.5)
	case job.SparseTable.MemoryBytes > 0: // training may wait for the memory of copies
		p.share = 1
	}
	return p
}

// On reports whether there are snapshots.
func (p *Snapshots) On() bool { return p.every != (configs.SnapshotInterval{}) }

// Pass counts a trained pass.
func (p *Snapshots) Pass() { p.passes++ }

// Began records that a snapshot was begun after the given number of examples.
func (p *Snapshots) Began(now time.Time, examples int64) {
	p.begun, p.passes, p.examples = now, 0, examples
}

// GoOn sets the number of examples that earlier processes of the run have trained.
func (p *Snapshots) GoOn(examples int64) { p.examples = examples }

// Due reports whether a snapshot is due after the given number of examples.
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

// dueAfter reports whether a snapshot is due, if the job leaves that open, at the given time after
// the last one. It asks for the size of the table only now and then.
func (p *Snapshots) dueAfter(since time.Duration) bool {
	if since < p.interval {
		return false
	}
	p.interval = p.next()
	return since >= p.interval
}

// next returns the interval for the current state.
func (p *Snapshots) next() time.Duration {
	cost := p.cost.Seconds()
	if cost == 0 {
		cost = p.share * float64(p.size()) / snapshotBytesPerSecond
	}
	interval := max(leastSnapshotInterval, time.Duration(cost/snapshotShare*float64(time.Second)))
	return interval << min(p.failures, mostDoublings)
}

// Saved records a snapshot: how long training waited for it, and how long writing it took.
func (p *Snapshots) Saved(stall, took time.Duration) {
	p.cost, p.failures = stall+time.Duration(p.share*float64(took)), 0
	p.interval = leastSnapshotInterval
}

// Failed records a failed snapshot.
func (p *Snapshots) Failed() {
	p.failures++
	p.interval = leastSnapshotInterval
}
