package optim

import (
	"math"
	"strings"
	"testing"
)

func TestScheduleAgainstFormula(t *testing.T) {
	for _, c := range []struct {
		cfg  ScheduleConfig
		want func(steps float64) float64 // behind the warm-up
	}{
		{ScheduleConfig{}, func(float64) float64 { return 1 }},
		{ScheduleConfig{WarmupSteps: 10, Decay: "none"}, func(float64) float64 { return 1 }},
		{ScheduleConfig{WarmupSteps: 10, Decay: "linear", DecaySteps: 100, Floor: 0.1}, func(s float64) float64 { return max(0.1, 1-0.9*s/100) }},
		{ScheduleConfig{Decay: "cosine", DecaySteps: 100, Floor: 0.2}, func(s float64) float64 {
			return 0.2 + 0.8*(1+math.Cos(math.Pi*min(s, 100)/100))/2
		}},
		{ScheduleConfig{WarmupSteps: 3, Decay: "exponential", DecaySteps: 7, DecayRate: 0.9, Floor: 0.01}, func(s float64) float64 { return max(0.01, math.Pow(0.9, s/7)) }},
		{ScheduleConfig{WarmupSteps: 16, Decay: "inverse_sqrt"}, func(s float64) float64 { return math.Sqrt(16 / (16 + s)) }},
		{ScheduleConfig{Decay: "inverse_sqrt", DecaySteps: 50, Floor: 0.3}, func(s float64) float64 { return max(0.3, math.Sqrt(50/(50+s))) }},
	} {
		s, err := NewSchedule(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for step := int64(1); step < 1000; step++ {
			want := float64(step) / float64(c.cfg.WarmupSteps)
			if step > c.cfg.WarmupSteps {
				want = c.want(float64(step - c.cfg.WarmupSteps))
			}
			if got := float64(s.Multiplier(step)); math.Abs(got-want) > 1e-7 {
				t.Fatalf("%+v: step %d: %v, want %v", c.cfg, step, got, want)
			}
		}
	}
}

func TestScheduleRejects(t *testing.T) {
	_, err := NewSchedule(ScheduleConfig{WarmupSteps: -1, Decay: "exponential", DecayRate: 2, Floor: math.NaN()})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"warmup_steps", "decay_steps", "decay_rate", "floor"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in:\n%v", want, err)
		}
	}
	if _, err := NewSchedule(ScheduleConfig{Decay: "cosin"}); err == nil {
		t.Error("an unknown decay was accepted")
	}
	if got := (Schedule{}).Multiplier(5); got != 1 {
		t.Errorf("the zero schedule gives %v", got)
	}
}

func TestNumerics(t *testing.T) {
	for i := range 2001 {
		x := float64(i) / 2000
		if got, want := cosPi(x), math.Cos(math.Pi*x); math.Abs(got-want) > 1e-15 {
			t.Errorf("cosPi(%v) = %v, want %v", x, got, want)
		}
	}
	for _, b := range []float64{0, 0.5, 0.9, 0.999, 1} {
		for _, n := range []int64{0, 1, 2, 7, 1000, 1 << 40} {
			if got, want := powInt(b, n), math.Pow(b, float64(n)); math.Abs(got-want) > 1e-12*want {
				t.Errorf("powInt(%v, %d) = %v, want %v", b, n, got, want)
			}
		}
		for _, f := range [][2]int64{{0, 1}, {1, 2}, {1, 3}, {6, 7}, {1<<59 - 1, 1 << 59}} {
			want := math.Pow(b, float64(f[0])/float64(f[1]))
			if got := powFrac(b, f[0], f[1]); math.Abs(got-want) > 1e-14 {
				t.Errorf("powFrac(%v, %v) = %v, want %v", b, f, got, want)
			}
		}
	}
}
