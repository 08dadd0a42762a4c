package decay

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/trainer/optim"
)

func timeline(t *testing.T, h *History) *Timeline {
	t.Helper()
	x, err := NewTimeline(h)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSettle checks that a row that is settled after any number of steps has the values of a row
// that every step has multiplied by its factor, over runs with other rates and schedules.
func TestSettle(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	var h *History
	for _, run := range []struct {
		after    int64
		rates    Rates
		schedule string
		segments int
	}{
		{0, Rates{First: 0.001, Rest: 0.001}, "constant", 1}, {500, Rates{First: 0.001, Rest: 0.001}, "constant", 1}, {900, Rates{First: 0.01, Rest: 0.0001}, "constant", 2},
		{1000, Rates{First: 0, Rest: 0}, "constant", 3}, {1200, Rates{First: 0.002, Rest: 0.01}, "linear", 4}, {2000, Rates{First: 0.002, Rest: 0.01}, "linear", 5},
	} {
		var renew bool
		first := h == nil
		if h, renew = h.Continued(run.after, run.rates, schedules[run.schedule]); renew != first || len(h.Segments) != run.segments {
			t.Fatalf("after %d: %d segments, renew: %v", run.after, len(h.Segments), renew)
		}
	}
	const steps = 3000
	x := timeline(t, h)
	dense := [][]float64{{1, 1, 1}} // after each step
	for k := int64(1); k <= steps; k++ {
		s := h.Segments[0]
		for _, next := range h.Segments[1:] {
			if next.After < k {
				s = next
			}
		}
		schedule, err := optim.NewSchedule(s.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		m := schedule.Factor(k - s.After)
		w := dense[k-1]
		dense = append(dense, []float64{w[0] * (1 - s.Rates.First*m), w[1] * (1 - s.Rates.Rest*m), w[2] * (1 - s.Rates.Rest*m)})
	}
	for range 2000 {
		from := rng.Int64N(steps)
		to := from + rng.Int64N(steps+1-from)
		before, now := x.At(from), x.At(to)
		row := []float32{1, -1, 2}
		now.Settle(row, []float32{before.Clock()})
		a, b := dense[from], dense[to]
		for i, want := range []float64{b[0] / a[0], -b[1] / a[1], 2 * b[2] / a[2]} {
			if math.Abs(float64(row[i])-want) > 2e-7*math.Abs(want) {
				t.Fatalf("steps %d to %d: value %d is %v, want %v", from, to, i, row[i], want)
			}
		}
		never := []float32{1, -1, 2}
		if now.Settle(never, []float32{0}); !slices.Equal(never, []float32{1, -1, 2}) {
			t.Fatal("a row that was never updated decays")
		}
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var read Timeline
	if err := json.Unmarshal(text, &read); err != nil || len(read.segments) != len(x.segments) || read.At(2999).sums != x.At(2999).sums {
		t.Errorf("%s read back: %+v, %v", text, read, err)
	}
	if err := json.Unmarshal([]byte(`{"base":0,"segments":[{"after":3},{"after":2}]}`), &read); err == nil {
		t.Error("segments out of order are no error")
	}
}

// TestSettleByDenominators checks rows whose decay is divided by their denominators, in a history
// that began without them. They must have the values that every step has reduced, each value
// according to the state of its row.
func TestSettleByDenominators(t *testing.T) {
	rows, err := optim.NewRows(optim.RowConfig{Kind: "adagrad", LearningRate: 0.05, TableL2: 0.02, Epsilon: 1e-8}, 3)
	if err != nil {
		t.Fatal(err)
	}
	rates := RatesOf(rows)
	h, _ := (*History)(nil).Continued(0, Rates{First: 0.002, Rest: 0.001}, optim.ScheduleConfig{})
	h, renew := h.Continued(10, rates, schedules["linear"])
	if renew || len(h.Segments) != 2 {
		t.Fatalf("%+v, renew: %v", h, renew)
	}
	schedule, err := optim.NewSchedule(schedules["linear"])
	if err != nil {
		t.Fatal(err)
	}
	x := timeline(t, h)
	before, now := x.At(4), x.At(300)
	values, state := []float32{1, -1, 2}, []float32{0.04, 0.01, 0.07, before.Clock()}
	want := []float64{math.Pow(0.998, 6), -math.Pow(0.999, 6), 2 * math.Pow(0.999, 6)}
	for k := int64(11); k <= 300; k++ {
		factor := 1 - 0.05*0.02*schedule.Factor(k-10)
		want[0] *= math.Pow(factor, 1/0.2)
		want[1] *= math.Pow(factor, 1/math.Sqrt(0.04))
		want[2] *= math.Pow(factor, 1/math.Sqrt(0.04))
	}
	now.Settle(values, state)
	for i := range want {
		if math.Abs(float64(values[i])-want[i]) > 1e-6*math.Abs(want[i]) {
			t.Errorf("value %d is %v, want %v", i, values[i], want[i])
		}
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var read Timeline
	if err := json.Unmarshal(text, &read); err != nil || read.At(299).sums != x.At(299).sums || *read.by != *x.by {
		t.Errorf("%s read back: %v", text, err)
	}
	for _, next := range []Rates{{First: 0.1, Rest: 0.1}, {First: 0.1, Rest: 0.1, By: &Denominators{Rest: optim.Accumulators{To: 1}}}} {
		if n, renew := h.Continued(300, next, optim.ScheduleConfig{}); !renew || n.Base != 300 || len(n.Segments) != 1 {
			t.Errorf("%+v: rows keep their clocks, although their state may be another: %+v", next, n)
		}
	}
	if n, renew := h.Continued(300, rates, optim.ScheduleConfig{}); renew || len(n.Segments) != 3 {
		t.Errorf("the same optimizer renews the clocks: %+v", n)
	}
	if x.WithoutState() != nil || (*Timeline)(nil).WithoutState() != nil {
		t.Error("a timeline that needs the state of rows goes on without it")
	}
	other := &History{Segments: []Segment{{Rates: rates}, {Rates: Rates{By: &Denominators{}}}}}
	if _, err := NewTimeline(other); err == nil {
		t.Error("different denominators are no error")
	}
}

// TestSettleWithoutGradients checks that the decay of a row is not divided by sums of squares that
// are 0 because all of its gradients were 0.
func TestSettleWithoutGradients(t *testing.T) {
	rows, err := optim.NewRows(optim.RowConfig{Kind: "adagrad", LearningRate: 0.05, TableL2: 0.02, Epsilon: 1e-8}, 3)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := (*History)(nil).Continued(0, RatesOf(rows), schedules["constant"])
	x := timeline(t, h)
	early, late := x.At(4), x.At(1000)
	_, clock := early.Step()
	values, state := []float32{1, 2, 3}, []float32{0, 0, 0, clock}
	late.Settle(values, state)
	if !slices.Equal(values, []float32{1, 2, 3}) {
		t.Errorf("a row that has had no gradient is %v", values)
	}
	state[0] = 1e-4
	if late.Settle(values, state); !(values[0] < 1) {
		t.Errorf("a row that has had one is %v", values)
	}
}

// TestOneStep checks that the factor of a step keeps the digits of a small rate.
func TestOneStep(t *testing.T) {
	h, _ := (*History)(nil).Continued(0, Rates{First: 5e-6, Rest: 5e-6}, optim.ScheduleConfig{})
	x := timeline(t, h)
	before := x.At(10)
	f, _ := before.Step()
	row := []float32{4096, 1 << 20}
	f.Apply(row)
	if want := float32(4096 - 4096*5e-6); row[0] != want {
		t.Errorf("%v, want %v", row[0], want)
	}
}

// TestClockPeriod checks that clocks may overflow: rows that were used less than a period ago have
// the right age.
func TestClockPeriod(t *testing.T) {
	const rate = 1e-9
	h, _ := (*History)(nil).Continued(5, Rates{First: rate, Rest: rate}, optim.ScheduleConfig{})
	x := timeline(t, h)
	for _, from := range []int64{5, 6, 1 << 31, 5 + clockPeriod - 1, 5 + clockPeriod, 5 + clockPeriod + 1, 1<<33 + 7} {
		for _, age := range []int64{0, 1, 1 << 20, clockPeriod - 1} {
			before, now := x.At(from), x.At(from+age)
			if before.Clock() == 0 {
				t.Fatalf("the clock after step %d is that of a row that was never updated", from)
			}
			row := []float32{1, 1}
			now.Settle(row, []float32{before.Clock()})
			if want := math.Exp(-rate * float64(age)); math.Abs(float64(row[1])-want) > 2e-7 {
				t.Errorf("step %d, age %d: %v, want %v", from, age, row[1], want)
			}
		}
	}
}

// TestRenewal checks that a warm start resets clocks before they overflow, and takes rows over with
// the values that they have then.
func TestRenewal(t *testing.T) {
	rates := Rates{First: 1e-9, Rest: 2e-9}
	h, _ := (*History)(nil).Continued(0, rates, optim.ScheduleConfig{})
	if next, renew := h.Continued(renewAfter, rates, optim.ScheduleConfig{}); renew || next.Base != 0 {
		t.Errorf("renewed after %d steps", int64(renewAfter))
	}
	const after = renewAfter + 1
	next, renew := h.Continued(after, rates, optim.ScheduleConfig{})
	if !renew || next.Base != after || len(next.Segments) != 1 {
		t.Fatalf("%+v, renew: %v", next, renew)
	}
	x, y := timeline(t, h), timeline(t, next)
	used := x.At(1000)
	for _, c := range []struct {
		name      string
		from, to  *Timeline
		renew     bool
		clock     float32
		want      int64 // steps that the values are decayed by
		wantClock uint32
	}{
		{"renewed", x, y, true, used.Clock(), after - 1000, 1},
		{"renewed, never updated", x, y, true, 0, 0, 0},
		{"kept", x, x, false, used.Clock(), 0, 1001},
		{"no clocks any more", x, nil, false, used.Clock(), after - 1000, 0},
		{"clocks are new", nil, y, true, 12345, 0, 1},
		{"no decay", nil, nil, false, 0, 0, 0},
	} {
		hand := NewHandover(c.from, c.to, after, c.renew)
		values := []float32{1, 1}
		clock := hand.Take(values, []float32{7, c.clock})
		for i, rate := range []float64{rates.First, rates.Rest} {
			if want := math.Exp(-rate * float64(c.want)); math.Abs(float64(values[i])-want) > 2e-7 {
				t.Errorf("%s: value %d is %v, want %v", c.name, i, values[i], want)
			}
		}
		if math.Float32bits(clock) != c.wantClock || hand.Counts() != (c.to != nil) {
			t.Errorf("%s: clock %d, want %d", c.name, math.Float32bits(clock), c.wantClock)
		}
	}
}
