package report

// Stage describes one stage of the pipeline, like a line of the paper's Table 1.
type Stage struct {
	Name           string  `json:"name"`
	Items          int64   `json:"passes"`
	BusySeconds    float64 `json:"busy_seconds"`
	StarvedSeconds float64 `json:"starved_seconds"`
	BlockedSeconds float64 `json:"blocked_seconds"`

	// The queue in front of the stage; the first stage has none.
	QueueMean     float64 `json:"queue_mean_length,omitempty"` // over time
	QueueCapacity int     `json:"queue_capacity,omitempty"`
}

// Plus returns what the same stage has done in two processes.
func (s Stage) Plus(other Stage) Stage {
	sum := Stage{
		Name: s.Name, Items: s.Items + other.Items, QueueCapacity: other.QueueCapacity,
		BusySeconds: s.BusySeconds + other.BusySeconds, StarvedSeconds: s.StarvedSeconds + other.StarvedSeconds, BlockedSeconds: s.BlockedSeconds + other.BlockedSeconds,
	}
	if all := sum.seconds(); all > 0 {
		sum.QueueMean = (s.QueueMean*s.seconds() + other.QueueMean*other.seconds()) / all
	}
	return sum
}

func (s Stage) seconds() float64 {
	return s.BusySeconds + s.StarvedSeconds + s.BlockedSeconds
}
