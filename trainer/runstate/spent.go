package runstate

import (
	"time"

	"aibox/internal/process"
	"aibox/pipeline"
	"aibox/trainer/report"
)

// Spent is the cost of an epoch. If the run was interrupted in the epoch, it is the sum over the
// processes that have trained it.
type Spent struct {
	Seconds   float64        `json:"seconds"`
	Processor float64        `json:"processor_seconds"` // of all cores
	Stages    []report.Stage `json:"stages,omitempty"`
}

// Plus returns the cost of two processes together.
func (s Spent) Plus(other Spent) Spent {
	sum := Spent{Seconds: s.Seconds + other.Seconds, Processor: s.Processor + other.Processor}
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

// Clock measures the cost of an epoch in this process.
type Clock struct {
	started time.Time
	cpu     time.Duration
	Pipe    *pipeline.Pipeline
}

func (c *Clock) Start() {
	*c = Clock{started: time.Now(), cpu: process.ProcessorTimeOrZero()}
}

// Now returns what has been spent so far.
func (c *Clock) Now() Spent {
	if c.Pipe == nil {
		return c.Stop(nil)
	}
	return c.Stop(c.Pipe.Stats())
}

// Stop returns what was spent if the stages have ended with the given measurements.
func (c *Clock) Stop(stages []pipeline.StageStats) Spent {
	s := Spent{Seconds: time.Since(c.started).Seconds(), Processor: (process.ProcessorTimeOrZero() - c.cpu).Seconds()}
	for _, st := range stages {
		s.Stages = append(s.Stages, report.Stage{
			Name: st.Name, Items: st.Items,
			BusySeconds: st.Busy.Seconds(), StarvedSeconds: st.Starved.Seconds(), BlockedSeconds: st.Blocked.Seconds(),
			QueueMean: st.QueueMean, QueueCapacity: st.QueueCap,
		})
	}
	return s
}
