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
type uploadPace struct {
	every    configs.RemoteInterval
	failTime time.Duration // T_fail
	share    float64       // what uploading in the background costs training, by its time
	begun    time.Time     // of the last upload; zero: there was none by this process
	skipped  int64         // snapshots since then that were not uploaded
}

func newUploadPace(r *run) uploadPace {
	return uploadPace{every: r.job.Snapshots.RemoteInterval(), failTime: r.job.Recovery.FailureTime(), share: r.snapshots.pace.share}
}

// interval is T_save for an upload that took so long.
func (p *uploadPace) interval(took time.Duration) time.Duration {
	save := p.share * took.Seconds()
	return time.Duration(math.Sqrt(2*save*p.failTime.Seconds()) * float64(time.Second))
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

// began takes note of an upload.
func (p *uploadPace) began(now time.Time) { p.begun, p.skipped = now, 0 }
