package hostrows

import (
	"math"
	"math/rand/v2"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kernelrig"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/decay"
	"aibox/trainer/optim"
)

// randomRowOptimizer draws one for rows of so many values. Perhaps its rows decay.
func randomRowOptimizer(rng *rand.Rand, values int) (*optim.Rows, error) {
	kinds := []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"}
	decays := rng.IntN(3)
	config := func() optim.RowConfig {
		c := optim.RowConfig{
			Kind: kinds[rng.IntN(len(kinds))], LearningRate: 0.05 + 0.1*rng.Float64(), Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-4,
			InitialAccumulator: 0.1, L2: 0.01 * float64(rng.IntN(2)), FTRLBeta: 1, FTRLL1: 0.01, FTRLL2: 0.1,
		}
		switch divided := c.Kind == "adagrad" || c.Kind == "rowwise_adagrad"; {
		case decays == 1:
			c.WeightDecay = 2 * rng.Float64()
		case decays == 2 && divided:
			c.TableL2 = rng.Float64()
		}
		return c
	}
	if values > 1 && rng.IntN(2) == 0 {
		return optim.NewLinearRows(config(), config(), values)
	}
	return optim.NewRows(config(), values)
}

// randomTimeline is one of rows that have decayed at other rates, and now do as the optimizer says;
// nil if they do not.
func randomTimeline(rng *rand.Rand, rows *optim.Rows, now int64) (*decay.Timeline, error) {
	if !rows.Decays() {
		return nil, nil
	}
	var h *decay.History
	rates := decay.RatesOf(rows)
	for i := range 1 + rng.Int64N(3) {
		scheduled := []optim.ScheduleConfig{{}, {WarmupSteps: 9, Decay: "cosine", DecaySteps: 300, Floor: 0.1}}[rng.IntN(2)]
		old := rates
		if old.By == nil {
			old.First *= rng.Float64()
			old.Rest *= rng.Float64()
		}
		if old.First == 0 && rng.IntN(2) == 0 {
			old = rates
		}
		h, _ = h.Continued(i*now/4, old, scheduled)
	}
	h, _ = h.Continued(now, rates, optim.ScheduleConfig{WarmupSteps: 3})
	return decay.NewTimeline(h)
}

// fill sets the words of a new row as those of one that was perhaps used before.
func (b *rowsBench) fill(row []float32, key uint64) {
	l, rng := b.e.Layout, b.rng
	values := make([]float32, l.ValueDim)
	for i := range values {
		values[i] = float32(rng.NormFloat64()) * []float32{0, 1, 1, 1e-6}[rng.IntN(4)]
	}
	state := l.State(row)
	b.e.Rows.Init(values, state[:b.e.Rows.StateDim()])
	l.StoreValues(row, values, key, sparsetable.NewRounding(1, 0))
	if rng.IntN(4) == 0 {
		return
	}
	l.SetStats(row, sparsetable.RowStats{Show: 9 * rng.Float32(), Click: rng.Float32(), LastSeen: uint32(10 + rng.IntN(15)), Count: []uint32{1, 2, 3, math.MaxUint32 - 1}[rng.IntN(4)]})
	if b.e.decay.timeline != nil {
		m := b.e.decay.timeline.At(b.e.state.Step - []int64{0, 1, 40, 700, 1000}[rng.IntN(5)])
		*decay.ClockOf(state) = m.Clock()
		if rng.IntN(10) == 0 {
			*decay.ClockOf(state) = math.Float32frombits(math.MaxUint32 - 9) // from before clocks began anew
		}
	}
}

// batch draws a mini-batch.
func (b *rowsBench) batch() *reader.Batch {
	rng := b.rng
	x := &reader.Batch{N: 1 + rng.IntN(30), Offsets: []int32{0}}
	for _, i := range rng.Perm(b.rows)[:1+rng.IntN(b.rows)] {
		x.Rows = append(x.Rows, int32(i))
	}
	largest := 1 + rng.IntN(3)
	weighted := rng.IntN(2) == 0
	for range x.N {
		x.Labels = append(x.Labels, float32(rng.IntN(2)))
		for range b.e.Network.Fields {
			for range rng.IntN(largest + 1) {
				x.Index = append(x.Index, int32(rng.IntN(len(x.Rows))))
				if weighted {
					x.BagWeights = append(x.BagWeights, []float32{0, 1, 2 * rng.Float32(), -1}[rng.IntN(4)])
				}
			}
			x.Offsets = append(x.Offsets, int32(len(x.Index)))
		}
	}
	for i := range x.Rows { // every row occurs
		x.Index = append(x.Index, int32(i))
		if weighted {
			x.BagWeights = append(x.BagWeights, rng.Float32())
		}
	}
	x.Offsets[len(x.Offsets)-1] = int32(len(x.Index))
	x.Invert(len(x.Rows))
	return x
}

// deviceBatch is a mini-batch on the device.
type deviceBatch struct {
	batch  kernels.TableBatch
	bags   kernels.Bags
	labels gpu.Region
}

func (b *rowsBench) upload(x *reader.Batch) *deviceBatch {
	fields := b.e.Network.Fields
	d := &deviceBatch{labels: kernelrig.Put(b.Rig, x.Labels)}
	d.batch = kernels.TableBatch{
		Rows: len(x.Rows), Fields: fields, Index: kernelrig.Put(b.Rig, x.Rows), Starts: kernelrig.Put(b.Rig, x.RowStarts), Bags: kernelrig.Put(b.Rig, x.RowBags),
	}
	d.bags = kernels.Bags{Fields: fields, Offsets: kernelrig.Put(b.Rig, x.Offsets), Index: kernelrig.Put(b.Rig, x.Index)}
	if x.BagWeights != nil {
		d.batch.Weights, d.bags.Weights = kernelrig.Put(b.Rig, x.RowWeights), kernelrig.Put(b.Rig, x.BagWeights)
	}
	if b.mean {
		averaged := make([]int32, fields)
		for f := range averaged {
			if b.sums == nil || !b.sums[f] {
				averaged[f] = 1
			}
		}
		d.bags.Averaged, d.bags.Means = kernelrig.Put(b.Rig, averaged), b.Alloc(4*x.N*fields)
	}
	return d
}
