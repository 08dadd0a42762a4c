package pace

import (
	"math"
	"time"

	"aibox/configs"
)

// Uploads chooses which snapshots are uploaded to snapshots.remote.
//
// After a failure that takes the local snapshots with it, on average half of the time between
// two uploads is trained again. With an upload that costs O_save every T_save, and a failure
// every T_fail, uploading and training again take the share O_save/T_save + T_save/(2·T_fail)
// of the time, which is least for T_save = √(2·O_save·T_fail) (CPR, Maeng et al., MLSys 2021,
// §2.2).
//
// With partial recovery, nothing is trained again. A failure loses half of what was trained
// between two uploads, for one of N directories, so that the portion of lost samples is expected
// to be T_save/(2·N·T_fail) (eq. 4). It is to be that which the job allows. Uploading takes the
// share O_save/T_save of the time. Where that is more than full recovery takes in all, partial
// recovery does not pay, and full recovery is used (§4.1).
type Uploads struct {
	every    configs.RemoteInterval
	failTime time.Duration // T_fail
	share    float64       // what uploading in the background costs training, by its time
	Partial  time.Duration // T_save with partial recovery; 0: it is full recovery
	begun    time.Time     // of the last upload; zero: there was none by this process
	skipped  int64         // snapshots since then that were not uploaded
}

// NewUploads returns the pace of a job's uploads.
func NewUploads(job *configs.Job, snapshots *Snapshots) Uploads {
	p := Uploads{every: job.Snapshots.RemoteInterval(), failTime: job.Recovery.FailureTime(), share: snapshots.share}
	if rec := &job.Recovery; rec.Mode == configs.RecoveryPartial {
		dirs := max(len(job.SparseTable.Dirs), 1)
		p.Partial = max(time.Duration(2*rec.MaxLostSamples*float64(dirs)*float64(p.failTime)), 1)
	}
	return p
}

// interval is T_save for an upload that took so long.
func (p *Uploads) interval(took time.Duration) time.Duration {
	if p.Partial > 0 && !p.FullPays(took) {
		return p.Partial
	}
	return p.Full(took)
}

// Full is T_save with full recovery.
func (p *Uploads) Full(took time.Duration) time.Duration {
	save := p.share * took.Seconds()
	return time.Duration(math.Sqrt(2*save*p.failTime.Seconds()) * float64(time.Second))
}

// FullPays reports whether full recovery costs less than the partial recovery that the job
// asks for, when the last upload took so long; 0: it is not known. At the best interval T of full
// recovery, its two costs are equal: 2·O_save/T in all.
func (p *Uploads) FullPays(took time.Duration) bool {
	return p.every.Auto && p.Partial > 0 && took > 0 && 2*p.Partial < p.Full(took)
}

// Due reports whether a snapshot is to be uploaded, when the last upload took so long; 0: it
// is not known.
func (p *Uploads) Due(now time.Time, took time.Duration) bool {
	if p.begun.IsZero() {
		return true
	}
	switch since := now.Sub(p.begun); {
	case p.every.Auto:
		return took == 0 || since >= p.interval(took)
	case p.every.Time > 0:
		return since >= p.every.Time
	default:
		return p.skipped+1 >= p.every.Snapshots
	}
}

// PriorityDue reports whether rows are to be saved by priority, when that was done, or a
// snapshot was uploaded, so long ago, and there were so many local snapshots since then: every
// r·T_save (CPR, §4.2).
func (p *Uploads) PriorityDue(since time.Duration, snapshots int64, r float64) bool {
	switch {
	case p.every.Auto:
		return since >= time.Duration(r*float64(p.Partial))
	case p.every.Time > 0:
		return since >= time.Duration(r*float64(p.every.Time))
	}
	return snapshots >= int64(math.Round(r*float64(p.every.Snapshots)))
}

// Skip takes note of a snapshot that is not uploaded.
func (p *Uploads) Skip() { p.skipped++ }

// Began takes note of an upload.
func (p *Uploads) Began(now time.Time) { p.begun, p.skipped = now, 0 }
