package hostrows

import (
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// rowDecay is the weight decay of rows.
type rowDecay struct {
	timeline *decay.Timeline // nil: rows do not decay
	now      decay.Moment    // after the last step
	step     decay.Factors   // of the present step
	clock    float32         // that the update leaves
	stateDim int             // words of the optimizer's state, behind which a row has its clock
}

func newRowDecay(t *decay.Timeline, rows *optim.Rows) rowDecay {
	d := rowDecay{timeline: t}
	if t != nil && rows != nil {
		d.stateDim = rows.StateDim()
	}
	return d
}

// until prepares settle: rows are decayed up to the end of a step.
func (d *rowDecay) until(step int64) {
	if d.timeline != nil {
		d.now = d.timeline.At(step)
	}
}

// settle decays values, which are those of a row with that state, up to the last step.
func (d *rowDecay) settle(values, state []float32) {
	if d.timeline != nil {
		d.now.Settle(values, state)
	}
}

// next prepares update for the step that follows the one of until.
func (d *rowDecay) next() {
	if d.timeline != nil {
		d.step, d.clock = d.now.Step()
	}
}

// update decays values, which are settled, by the present step, and returns the part of the
// state that belongs to the optimizer.
func (d *rowDecay) update(values, state []float32) []float32 {
	if d.timeline == nil {
		return state
	}
	d.step.Apply(values)
	*decay.ClockOf(state) = d.clock
	return state[:d.stateDim]
}
