package optim

import (
	"errors"
	"fmt"
	"math"
)

// ScheduleConfig describes how the learning rate changes with the step t.
type ScheduleConfig struct {
	WarmupSteps int64  `json:"warmup_steps,omitempty"` // t/WarmupSteps while t <= WarmupSteps
	Decay       string `json:"decay,omitempty"`        // afterwards: none (also ""), linear, cosine, exponential, inverse_sqrt
	// DecaySteps is a number of steps after the warm-up. linear and cosine reach Floor after it.
	// exponential multiplies by DecayRate over it, smoothly. inverse_sqrt is
	// sqrt(DecaySteps/(DecaySteps+steps)); there 0 stands for WarmupSteps, which makes it
	// sqrt(WarmupSteps/t).
	DecaySteps int64   `json:"decay_steps,omitempty"`
	DecayRate  float64 `json:"decay_rate,omitempty"` // exponential: in (0,1]
	Floor      float64 `json:"floor,omitempty"`      // smallest multiplier after the warm-up, in [0,1]
}

// Constant reports whether the multiplier is always 1.
func (c ScheduleConfig) Constant() bool {
	return c.WarmupSteps == 0 && (c.Decay == "" || c.Decay == "none")
}

// Schedule gives the multiplier of the learning rates.
type Schedule struct{ cfg ScheduleConfig }

// maxSteps keeps sums and doubled numbers of steps within 64 bits.
const maxSteps = 1 << 60

// NewSchedule checks cfg.
func NewSchedule(cfg ScheduleConfig) (Schedule, error) {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("optim: schedule: "+format, args...))
	}
	if cfg.WarmupSteps < 0 || cfg.WarmupSteps > maxSteps {
		fail("warmup_steps %d: want 0 to %d", cfg.WarmupSteps, int64(maxSteps))
	}
	if cfg.DecaySteps < 0 || cfg.DecaySteps > maxSteps {
		fail("decay_steps %d: want 0 to %d", cfg.DecaySteps, int64(maxSteps))
	}
	if !(cfg.Floor >= 0 && cfg.Floor <= 1) {
		fail("floor %v: want 0 to 1", cfg.Floor)
	}
	switch cfg.Decay {
	case "":
		cfg.Decay = "none"
	case "none":
	case "linear", "cosine", "exponential":
		if cfg.DecaySteps == 0 {
			fail("decay %s needs decay_steps", cfg.Decay)
		}
		if cfg.Decay == "exponential" && !(cfg.DecayRate > 0 && cfg.DecayRate <= 1) {
			fail("decay_rate %v: want above 0, at most 1", cfg.DecayRate)
		}
	case "inverse_sqrt":
		if cfg.DecaySteps == 0 {
			cfg.DecaySteps = max(1, cfg.WarmupSteps)
		}
	default:
		fail("decay %q: want none, linear, cosine, exponential or inverse_sqrt", cfg.Decay)
	}
	return Schedule{cfg}, errors.Join(errs...)
}

// Multiplier returns the factor on the learning rates in step t, 1 for the first. The zero Schedule
// gives 1.
func (s Schedule) Multiplier(t int64) float32 { return float32(s.Factor(t)) }

// Factor is Multiplier before rounding.
func (s Schedule) Factor(t int64) float64 {
	c := s.cfg
	if t <= c.WarmupSteps {
		return float64(t) / float64(c.WarmupSteps)
	}
	steps := t - c.WarmupSteps
	var m float64
	switch c.Decay {
	case "linear":
		m = c.between(1 - c.progress(steps))
	case "cosine":
		m = c.between(0.5 + float64(0.5*cosPi(c.progress(steps))))
	case "exponential":
		m = float64(powInt(c.DecayRate, steps/c.DecaySteps) * powFrac(c.DecayRate, steps%c.DecaySteps, c.DecaySteps))
	case "inverse_sqrt":
		m = math.Sqrt(float64(c.DecaySteps) / float64(c.DecaySteps+steps))
	default:
		return 1
	}
	return max(m, c.Floor)
}

// progress returns the share of the decay steps that have passed.
func (c ScheduleConfig) progress(steps int64) float64 {
	return float64(min(steps, c.DecaySteps)) / float64(c.DecaySteps)
}

// between interpolates from Floor at x = 0 to 1 at x = 1.
func (c ScheduleConfig) between(x float64) float64 {
	return c.Floor + float64((1-c.Floor)*x)
}
