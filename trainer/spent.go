package trainer

import (
	"time"

	"aibox/internal/process"
	"aibox/pipeline"
	"aibox/trainer/report"
)

// spent is what an epoch has taken. If the run was interrupted in the epoch, that is the
// sum over the processes that have trained it.
type spent struct {
	Seconds   float64        `json:"seconds"`
	Processor float64        `json:"processor_seconds"` // of all cores
	Stages    []report.Stage `json:"stages,omitempty"`
}

// plus is what two processes have taken together.
func (s spent) plus(other spent) spent {
	sum := spent{Seconds: s.Seconds + other.Seconds, Processor: s.Processor + other.Processor}
	if len(other.Stages) == 0 {
		sum.Stages = s.Stages
	}
	for i, st := range other.Stages {
		if i < len(s.Stages) {
			st = s.Stages[i].Plus(st)
		}
		sum.Stages = append(sum.Stages, st)
	}
	return sum
}

// epochClock measures what the present process takes for an epoch.
type epochClock struct {
	started time.Time
	cpu     time.Duration
	pipe    *pipeline.Pipeline
}

func (c *epochClock) start() {
	*c = epochClock{started: time.Now(), cpu: process.ProcessorTimeOrZero()}
}

// now is what was spent until now.
func (c *epochClock) now() spent {
	if c.pipe == nil {
		return c.stop(nil)
	}
	return c.stop(c.pipe.Stats())
}

// stop is what was spent if the stages have ended with these measurements.
func (c *epochClock) stop(stages []pipeline.StageStats) spent {
	s := spent{Seconds: time.Since(c.started).Seconds(), Processor: (process.ProcessorTimeOrZero() - c.cpu).Seconds()}
	for _, st := range stages {
		s.Stages = append(s.Stages, report.Stage{
			Name: st.Name, Items: st.Items,
			BusySeconds: st.Busy.Seconds(), StarvedSeconds: st.Starved.Seconds(), BlockedSeconds: st.Blocked.Seconds(),
			QueueMean: st.QueueMean, QueueCapacity: st.QueueCap,
		})
	}
	return s
}
