package decay

// Handover says what becomes of the clocks of rows that a model takes over from an earlier one. The zero
// Handover is that of rows that decay in neither of them.
type Handover struct {
	from, to bool   // the rows have clocks in the earlier model, and in this one
	renew    bool   // all rows get the clock fresh
	now      Moment // after the earlier model's last step
	fresh    float32
}

// NewHandover is for rows of a model with the timeline earlier after that step, which this model takes over
// with the timeline now. A nil timeline is that of rows that do not decay. renew is what
// History.Continued has returned.
func NewHandover(earlier, now *Timeline, step int64, renew bool) (h Handover) {
	h.from, h.to, h.renew = earlier != nil, now != nil, renew
	if h.from {
		h.now = earlier.At(step)
	}
	if h.to {
		m := now.At(step)
		h.fresh = m.Clock()
	}
	return h
}

// Counts reports whether rows have a clock in this model.
func (h *Handover) Counts() bool { return h.to }

// Renews reports whether rows change.
func (h *Handover) Renews() bool { return h.renew }

// Take returns the clock in this model of a row with the given values and state in the
// earlier one. It decays the values if that clock does not stand for them.
func (h *Handover) Take(values, state []float32) float32 {
	if !h.from {
		return h.fresh
	}
	clock := *ClockOf(state)
	if h.to && !h.renew || clock == 0 {
		return clock
	}
	h.now.Settle(values, state)
	return h.fresh
}
