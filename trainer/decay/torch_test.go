package decay

import (
	"math"
	"testing"

	"aibox/trainer/optim"
)

// TestAsPyTorch: rows that are used in some steps only end as a dense table of torch.optim.Adagrad
// whose values AdamW's way of decay, p.mul_(1 - lr * weight_decay), shrinks in every step, with a
// learning rate that falls.
func TestAsPyTorch(t *testing.T) {
	const rate, decay = 0.05, 0.4
	rows, err := optim.NewRows(optim.RowConfig{Kind: "adagrad", LearningRate: rate, WeightDecay: decay, Epsilon: 1e-8, InitialAccumulator: 0.1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	falling := optim.ScheduleConfig{Decay: "linear", DecaySteps: 20}
	schedule, err := optim.NewSchedule(falling)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := (*History)(nil).Continued(0, RatesOf(rows), falling)
	x := timeline(t, h)
	values := [][]float32{{0.5, -0.25}, {0.125, 1}, {-0.75, 0.375}}
	var state [3][]float32 // and the clock
	used := [][]int{{0}, {1}, {0, 1}, {}, {2}, {0}, {1}, {1, 2}, {0}, {0, 1}, {}, {2}}
	for i := range values {
		state[i] = make([]float32, rows.StateDim()+1)
		rows.Init(values[i], state[i][:rows.StateDim()])
		begin := x.At(0)
		*ClockOf(state[i]) = begin.Clock() // a dense table decays from the first step on
	}
	for i, batch := range used {
		k := int64(i + 1)
		before := x.At(k - 1)
		decayed, clock := before.Step()
		step := rows.Step(k, schedule.Multiplier(k))
		for _, row := range batch {
			grad := make([]float32, 2)
			for v := range grad {
				grad[v] = float32((7*int(k)+3*row+5*v)%11-5) / 10
			}
			before.Settle(values[row], state[row])
			decayed.Apply(values[row])
			step.Update(values[row], state[row][:rows.StateDim()], grad)
			*ClockOf(state[row]) = clock
		}
	}
	end := x.At(int64(len(used)))
	want := [][]float64{{0.3475056290626526, -0.1613992601633072}, {0.09941443055868149, 0.8807030916213989}, {-0.662402331829071, 0.3555450141429901}}
	for i := range values {
		end.Settle(values[i], state[i])
		for v := range values[i] {
			if math.Abs(float64(values[i][v])-want[i][v]) > 2e-7 {
				t.Errorf("row %d: %v, PyTorch has %v", i, values[i], want[i])
			}
		}
	}
}
