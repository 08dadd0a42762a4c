package pace

import (
	"math"
	"time"

	"aibox/configs"
)

// Uploads decides which snapshots are uploaded to snapshots.remote.
//
// After a failure that destroys the local snapshots, half of the time between two uploads is
// trained again on average. With an upload that costs O_save every T_save, and a failure every
// T_fail, uploading and training again take the share O_save/T_save + T_save/(2·T_fail) of the
// time. That is least for T_save = √(2·O_save·T_fail) (CPR, Maeng et al., MLSys 2021, §2.2).
//
// With partial recovery, nothing is trained again. A failure loses half of what was trained between
// two uploads, for one of N directories, so the expected portion of lost samples is
// T_save/(2·N·T_fail) (eq. 4). T_save is chosen so that this is what the job allows. Uploading
// takes the share O_save/T_save of the time. If that exceeds the total cost of full recovery,
// partial recovery does not pay, and full recovery is used (§4.1).
type Uploads struct {
	every    configs.RemoteInterval
	failTime time.Duration // T_fail
	share    float64       // what background uploading costs training, as a share of its time
	Partial  time.Duration // T_save with partial recovery; 0 with full recovery
	begun    time.Time     // start of the last upload; zero if this process has made none
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

// interval returns T_save for an upload that took the given time.
func (p *Uploads) interval(took time.Duration) time.Duration {
	if p.Partial > 0 && !p.FullPays(took) {
		return p.Partial
	}
	return p.Full(took)
}

// Full returns T_save with full recovery.
func (p *Uploads) Full(took time.Duration) time.Duration {
	save := p.share * took.Seconds()
	return time.Duration(math.Sqrt(2*save*p.failTime.Seconds()) * float64(time.Second))
}

// FullPays reports whether full recovery costs less than the partial recovery that the job asks
// for, given how long the last upload took; 0 means unknown. At the best interval T of full
// recovery, its two costs are equal: 2·O_save/T in all.
func (p *Uploads) FullPays(took time.Duration) bool {
	return p.every.Auto && p.Partial > 0 && took > 0 && 2*p.Partial < p.Full(took)
}

// Due reports whether a snapshot is to be uploaded, given how long the last upload took; 0 means
// unknown.
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

// PriorityDue reports whether rows are to be saved by priority, given the time and the number of
// local snapshots since that was last done or a snapshot was uploaded: every r·T_save (CPR, §4.2).
func (p *Uploads) PriorityDue(since time.Duration, snapshots int64, r float64) bool {
	switch {
	case p.every.Auto:
		return since >= time.Duration(r*float64(p.Partial))
	case p.every.Time > 0:
		return since >= time.Duration(r*float64(p.every.Time))
	}
	return snapshots >= int64(math.Round(r*float64(p.every.Snapshots)))
}

// Skip counts a snapshot that is not uploaded.
func (p *Uploads) Skip() { p.skipped++ }

// Began records the start of an upload.
func (p *Uploads) Began(now time.Time) { p.begun, p.skipped = now, 0 }
