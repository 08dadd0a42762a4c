package trainer

import (
	"math"
	"time"

	"aibox/configs"
)

// uploadPace chooses which snapshots are uploaded to snapshots.remote.
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
type uploadPace struct {
	every    configs.RemoteInterval
	failTime time.Duration // T_fail
	share    float64       // what uploading in the background costs training, by its time
	partial  time.Duration // T_save with partial recovery; 0: it is full recovery
	begun    time.Time     // of the last upload; zero: there was none by this process
	skipped  int64         // snapshots since then that were not uploaded
}

func newUploadPace(r *run) uploadPace {
	p := uploadPace{every: r.job.Snapshots.RemoteInterval(), failTime: r.job.Recovery.FailureTime(), share: r.snapshots.pace.share}
	if rec := &r.job.Recovery; rec.Mode == configs.RecoveryPartial {
		dirs := max(len(r.job.SparseTable.Dirs), 1)
		p.partial = max(time.Duration(2*rec.MaxLostSamples*float64(dirs)*float64(p.failTime)), 1)
	}
	return p
}

// interval is T_save for an upload that took so long.
func (p *uploadPace) interval(took time.Duration) time.Duration {
	if p.partial > 0 && !p.fullPays(took) {
		return p.partial
	}
	return p.full(took)
}

// full is T_save with full recovery.
func (p *uploadPace) full(took time.Duration) time.Duration {
	save := p.share * took.Seconds()
	return time.Duration(math.Sqrt(2*save*p.failTime.Seconds()) * float64(time.Second))
}

// fullPays reports whether full recovery costs less than the partial recovery that the job
// asks for, when the last upload took so long; 0: it is not known. At the best interval T of full
// recovery, its two costs are equal: 2·O_save/T in all.
func (p *uploadPace) fullPays(took time.Duration) bool {
	return p.every.Auto && p.partial > 0 && took > 0 && 2*p.partial < p.full(took)
}

// due reports whether a snapshot is to be uploaded, when the last upload took so long; 0: it
// is not known.
func (p *uploadPace) due(now time.Time, took time.Duration) bool {
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

// priorityDue reports whether rows are to be saved by priority, when that was done, or a
// snapshot was uploaded, so long ago, and there were so many local snapshots since then: every
// r·T_save (CPR, §4.2).
func (p *uploadPace) priorityDue(since time.Duration, snapshots int64, r float64) bool {
	switch {
	case p.every.Auto:
		return since >= time.Duration(r*float64(p.partial))
	case p.every.Time > 0:
		return since >= time.Duration(r*float64(p.every.Time))
	}
	return snapshots >= int64(math.Round(r*float64(p.every.Snapshots)))
}

// began takes note of an upload.
func (p *uploadPace) began(now time.Time) { p.begun, p.skipped = now, 0 }
