package hostrows

import (
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// rowDecay is the weight decay of rows.
type rowDecay struct {
	timeline *decay.Timeline // nil if rows do not decay
	now      decay.Moment    // after the last step
	step     decay.Factors   // of the current step
	clock    float32         // which update stores in the row
	stateDim int             // words of the optimizer's state; a row's clock follows them
}

func newRowDecay(t *decay.Timeline, rows *optim.Rows) rowDecay {
	d := rowDecay{timeline: t}
	if t != nil && rows != nil {
		d.stateDim = rows.StateDim()
	}
	return d
}

// until makes settle decay rows up to the end of the given step.
func (d *rowDecay) until(step int64) {
	if d.timeline != nil {
		d.now = d.timeline.At(step)
	}
}

// settle decays the values of a row with the given state up to the last step.
func (d *rowDecay) settle(values, state []float32) {
	if d.timeline != nil {
		d.now.Settle(values, state)
	}
}

// next makes update decay rows for the step after the one given to until.
func (d *rowDecay) next() {
	if d.timeline != nil {
		d.step, d.clock = d.now.Step()
	}
}

// update decays settled values for the current step, and returns the optimizer's part of the state.
func (d *rowDecay) update(values, state []float32) []float32 {
	if d.timeline == nil {
		return state
	}
	d.step.Apply(values)
	*decay.ClockOf(state) = d.clock
	return state[:d.stateDim]
}
