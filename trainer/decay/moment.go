package decay

import (
	"math"

	"aibox/internal/fixmath"
	"aibox/trainer/optim"
)

// clockPeriod is the number of different clocks of rows that were updated.
const clockPeriod = math.MaxUint32

// Moment is the state after a step of the model, up to which rows can be decayed. Any number of
// goroutines may call Clock and Settle at the same time. Step calls Timeline.At.
type Moment struct {
	timeline *Timeline
	step     int64
	sums     sums
}

// At returns the moment after a step of the model.
func (t *Timeline) At(step int64) Moment {
	if step > t.covered {
		if n := len(t.segments); n > 0 {
			t.segments[n-1].extend(step)
		}
		t.covered = step
	}
	return Moment{timeline: t, step: step, sums: t.at(step)}
}

// Clock returns the clock of a row that has been decayed up to this moment. Its bits are an
// integer.
func (m *Moment) Clock() float32 {
	return math.Float32frombits(m.clock())
}

func (m *Moment) clock() uint32 {
	return uint32((m.step-m.timeline.history.Base)%clockPeriod) + 1
}

// Settle decays the values of a row up to this moment. The last word of state is the row's clock.
func (m *Moment) Settle(values, state []float32) {
	before, now := math.Float32bits(*ClockOf(state)), m.clock()
	if before == 0 || before == now {
		return
	}
	age := int64(now) - int64(before)
	if age < 0 {
		age += clockPeriod
	}
	s := m.sums.minus(m.timeline.at(m.step - age))
	if s.divided != (pair{}) {
		s.alike.first += divided(s.divided.first, state, m.timeline.by.First)
		s.alike.rest += divided(s.divided.rest, state, m.timeline.by.Rest)
	}
	f := s.alike.factors()
	f.Apply(values)
}

// divided returns the logarithm of a row's factor. A row that has had no gradient does not decay.
func divided(log float64, state []float32, a optim.Accumulators) float64 {
	if log == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range state[a.From:a.To] {
		sum += float64(x)
	}
	if sum == 0 {
		return 0
	}
	return log / (math.Sqrt(sum/float64(a.To-a.From)) + a.Epsilon)
}

// Step returns what the next step does to a row that is settled up to this moment: the factors that
// multiply its values before the update, and its clock afterwards. If rates are divided by
// denominators, the decay of the step waits until the row is settled again, since the update
// changes the denominators.
func (m *Moment) Step() (Factors, float32) {
	if m.timeline.by != nil {
		return pair{}.factors(), m.Clock()
	}
	next := m.timeline.At(m.step + 1)
	return next.sums.minus(m.sums).alike.factors(), next.Clock()
}

// Factors multiply the values of a row.
type Factors struct{ first, rest factor }

// factor is 1+less, or exactly factor if that is far from 1. As a float32, 1+less would lose digits
// of less, which is some millionths for a step.
type factor struct{ less, factor float32 }

func (s pair) factors() Factors {
	f := Factors{rest: factorOf(s.rest)}
	f.first = f.rest
	if s.first != s.rest {
		f.first = factorOf(s.first)
	}
	return f
}

func factorOf(log float64) factor {
	if log > -0.5 {
		return factor{less: float32(fixmath.Expm1(log)), factor: 1}
	}
	return factor{factor: float32(fixmath.Exp(log))}
}

// Apply multiplies the values of a row.
func (f *Factors) Apply(values []float32) {
	f.first.apply(values[:1])
	f.rest.apply(values[1:])
}

func (f factor) apply(values []float32) {
	if f.less != 0 {
		for i, v := range values {
			values[i] = v + float32(v*f.less)
		}
	} else if f.factor != 1 {
		for i, v := range values {
			values[i] = float32(v * f.factor)
		}
	}
}
