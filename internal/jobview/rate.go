package jobview

import (
	"time"

	"aibox/trainer/report"
)

// rateMeter measures examples per second over the last frames: over at least rateWindow and at
// least rateBursts frames with new examples. The latter matters if a pass takes longer than a
// frame, so that examples come in bursts, with frames without any in between.
type rateMeter struct {
	phase report.Phase
	epoch int
	seen  []mark // where the number of examples had grown, oldest first; the rate is measured from the first
}

// mark is how many examples there were at a time.
type mark struct {
	examples int64
	at       time.Time
}

const (
	rateWindow = 3 * time.Second
	rateBursts = 4
)

// update takes note of a frame, and returns the rate, or 0 if it is not known yet.
func (m *rateMeter) update(v *report.View, now time.Time) float64 {
	if v.Phase != m.phase || v.Epoch != m.epoch || len(m.seen) == 0 || v.Examples < m.seen[len(m.seen)-1].examples {
		*m = rateMeter{phase: v.Phase, epoch: v.Epoch, seen: []mark{{v.ExamplesBefore, now.Add(-v.PhaseElapsed)}}}
	}
	if v.Examples > m.seen[len(m.seen)-1].examples {
		m.seen = append(m.seen, mark{v.Examples, now})
	}
	for len(m.seen) > rateBursts+1 && now.Sub(m.seen[1].at) >= rateWindow {
		m.seen = m.seen[1:]
	}
	first := m.seen[0]
	if dt := now.Sub(first.at).Seconds(); dt > 0 {
		return float64(v.Examples-first.examples) / dt
	}
	return 0
}
