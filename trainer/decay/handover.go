package decay

import "aibox/trainer/optim"

// Handover decides the clocks of rows that a model takes over from an earlier one. The zero
// Handover is for rows that decay in neither.
type Handover struct {
	from, to bool   // whether rows have clocks in the earlier model and in this one
	renew    bool   // all rows get the clock fresh
	now      Moment // after the earlier model's last step
	fresh    float32
	rates    Rates // in this model
}

// NewHandover is for rows of a model with the timeline earlier after the given step, which a model
// with the timeline now takes over. A nil timeline stands for rows that do not decay. renew is the
// result of History.Continued, or true if rows may have to wait (see Clock) because their state is
// not taken over unchanged.
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

// Renews reports whether all rows get new clocks.
func (h *Handover) Renews() bool { return h.renew }

// Take returns the clock in this model of a row with the given values and state in the earlier one.
// If the row gets a new clock, Take decays the values.
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

// Clock returns the final clock of a row for which Take returned taken, and whose state in this
// model, apart from the clock, is state. A row without gradients so far, because its optimizer is
// another one or its values are new, would be divided by next to nothing and vanish after a step.
// Its clock is 0, so it waits for its first update, as a new row does.
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
