package decay

import "aibox/trainer/optim"

// Handover says what becomes of the clocks of rows that a model takes over from an earlier one. The zero
// Handover is that of rows that decay in neither of them.
type Handover struct {
	from, to bool   // the rows have clocks in the earlier model, and in this one
	renew    bool   // all rows get the clock fresh
	now      Moment // after the earlier model's last step
	fresh    float32
	rates    Rates // in this model
}

// NewHandover is for rows of a model with the timeline earlier after that step, which this model
// takes over with the timeline now. A nil timeline is that of rows that do not decay. renew is what
// History.Continued has returned, or true where rows may have to wait (Clock), since their state is
// not taken over as it is.
func NewHandover(earlier, now *Timeline, step int64, renew bool) (h Handover) {
	h.from, h.to, h.renew = earlier != nil, now != nil, renew
	if h.from {
		h.now = earlier.At(step)
	}
	if h.to {
		m := now.At(step)
		h.fresh = m.Clock()
		h.rates = now.history.Segments[len(now.history.Segments)-1].Rates
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

// Clock is the clock of a row whose clock is that of Take, and whose state in this model, but for
// the clock, is state. A row without gradients yet, because its optimizer is another one or because
// its values are new, would be divided by next to nothing, and be gone after a step. It waits for
// its first update, as a new row does.
func (h *Handover) Clock(taken float32, state []float32) float32 {
	if by := h.rates.By; by != nil && (h.rates.First > 0 && zero(state, by.First) || h.rates.Rest > 0 && zero(state, by.Rest)) {
		return 0
	}
	return taken
}

// zero reports whether there are sums, and all of them are 0.
func zero(state []float32, a optim.Accumulators) bool {
	for _, x := range state[a.From:a.To] {
		if x != 0 {
			return false
		}
	}
	return a.To > a.From
}
