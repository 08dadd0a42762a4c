package decay

import (
	"math"
	"testing"

	"aibox/trainer/optim"
)

var schedules = map[string]optim.ScheduleConfig{
	"constant":            {},
	"warm-up":             {WarmupSteps: 100},
	"warm-up of one step": {WarmupSteps: 1, Decay: "linear", DecaySteps: 1},
	"linear":              {WarmupSteps: 37, Decay: "linear", DecaySteps: 3000, Floor: 0.1},
	"linear to 0":         {Decay: "linear", DecaySteps: 777},
	"cosine":              {WarmupSteps: 1000, Decay: "cosine", DecaySteps: 12345},
	"exponential":         {Decay: "exponential", DecaySteps: 50, DecayRate: 0.5, Floor: 0.01},
	"exponential to 0":    {WarmupSteps: 3, Decay: "exponential", DecaySteps: 7, DecayRate: 0.3},
	"inverse_sqrt":        {WarmupSteps: 200, Decay: "inverse_sqrt", Floor: 0.2},
}

// TestCurve checks that the sum of any number of steps is that of the single steps, for every
// schedule.
func TestCurve(t *testing.T) {
	const steps = 30000
	for name, s := range schedules {
		schedule, err := optim.NewSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, rate := range []float64{0, 1e-9, 5e-6, 0.001, 0.3, 0.999} {
			c, whole := curve{rate: rate, schedule: schedule}, curve{rate: rate, schedule: schedule}
			whole.extend(steps)
			want := 0.0
			for k := int64(1); k <= steps; k++ {
				want += math.Log1p(-rate * schedule.Factor(k))
				c.extend(k)
				got := c.sum(k)
				if math.Abs(got-want) > 2*tolerance*rate*float64(k)/(1-rate)+1e-12*math.Abs(want) {
					t.Fatalf("%s, rate %v: %v after %d steps, want %v", name, rate, got, k, want)
				}
				if got != whole.sum(k) {
					t.Fatalf("%s, rate %v: the sum of %d steps depends on how many follow", name, rate, k)
				}
			}
			if n := len(c.pieces); n > steps/2 && s.DecaySteps > 1000 {
				t.Errorf("%s, rate %v: %d pieces for %d steps", name, rate, n, steps)
			}
		}
	}
}

// TestManySteps checks that billions of steps take little time, with any schedule.
func TestManySteps(t *testing.T) {
	for name, s := range schedules {
		if s.DecaySteps > 0 {
			s.DecaySteps *= 1e5
		}
		schedule, err := optim.NewSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		c := curve{rate: 1e-5, schedule: schedule}
		c.extend(1 << 34)
		if len(c.pieces) > 100_000 {
			t.Errorf("%s: %d pieces", name, len(c.pieces))
		}
	}
}
