package optim

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kernelrig"
)

// deviceDense is copies of parameters, optimizer state and averages on a device.
type deviceDense struct {
	*kernelrig.Rig
	dense                   *Dense
	flag, check             gpu.Region
	params, grads, averages []kernels.Matrix
	slots                   [][]kernels.Matrix
}

func newDeviceDense(r *kernelrig.Rig, d *Dense) *deviceDense {
	x := &deviceDense{Rig: r, dense: d, flag: kernelrig.Put(r, []int32{0}), check: kernelrig.Put(r, []float32{0})}
	put := func(v []float32) kernels.Matrix { return kernelrig.Vector(kernelrig.Put(r, v)) }
	for i, p := range d.params {
		x.params = append(x.params, put(p.Data))
		x.grads = append(x.grads, put(p.Grad))
		if d.averages != nil {
			x.averages = append(x.averages, put(d.averages[i]))
		}
		var slots []kernels.Matrix
		for _, s := range d.Slots(i) {
			slots = append(slots, put(s))
		}
		x.slots = append(x.slots, slots)
	}
	return x
}

// step does what Dense.Step does, with the gradients that are on the host.
func (x *deviceDense) step(t int64, scale float32) {
	x.Helper()
	updates := x.dense.Updates(t, scale)
	averager, averages := x.dense.Averager(t)
	words := kernels.AppendUpdate(nil, &averager)
	for i := range updates {
		words = kernels.AppendUpdate(words, &updates[i].Update)
	}
	constants := kernelrig.Put(x.Rig, words)
	of := func(i int) gpu.Region {
		return gpu.Part(constants.Memory, i*kernels.UpdateBytes, kernels.UpdateBytes)
	}
	for i, p := range x.dense.params {
		kernelrig.Set(x.Rig, x.grads[i].Region(1), p.Grad)
	}
	for i, u := range updates {
		var slots []kernels.Matrix
		for _, s := range x.slots[u.Param] {
			slots = append(slots, s.Slice(u.Lo, u.Hi))
		}
		w := x.params[u.Param].Slice(u.Lo, u.Hi)
		x.Must(x.Optimize(x.Stream, x.flag, x.check, of(1+i), u.Formula, w, x.grads[u.Param].Slice(u.Lo, u.Hi), kernels.Half{}, slots...))
	}
	for i, a := range x.averages {
		if averages {
			x.Must(x.Optimize(x.Stream, x.flag, x.check, of(0), averager.Formula, a, x.params[i], kernels.Half{}))
		}
	}
}

// same fails the test unless the device has the bits of the host.
func (x *deviceDense) same(what string) {
	x.Helper()
	check := func(name string, host []float32, device kernels.Matrix) {
		x.Helper()
		got := kernelrig.Get[float32](x.Rig, device.Region(1))
		for i, v := range host {
			if math.Float32bits(got[i]) != math.Float32bits(v) {
				x.Fatalf("%s: %s: value %d is %v on the device, %v on the host", what, name, i, got[i], v)
			}
		}
	}
	for i, p := range x.dense.params {
		check(p.Name, p.Data, x.params[i])
		for s, m := range x.slots[i] {
			check(p.Name+"/"+x.dense.slotNames(i)[s], x.dense.slots[i][s], m)
		}
		if x.averages != nil {
			check(UnaveragedName(p.Name), x.dense.averages[i], x.averages[i])
		}
	}
}

// TestKernels: devices update parameters of all kinds as the host does, with optimizers of single
// parameters, state that began in different steps, and averages; and a flag stops them.
func TestKernels(t *testing.T) {
	names := slices.Sorted(maps.Keys(denseConfigs))
	kinds := []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"}
	kernelrig.Each(t, 100, func(r *kernelrig.Rig, rng *rand.Rand) {
		data := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(rng.NormFloat64())
			}
			return v
		}
		cfg := denseConfigs[names[rng.IntN(len(names))]]
		cfg.Averaging = float64(rng.IntN(2)) * 0.9
		own := RowConfig{Kind: kinds[rng.IntN(len(kinds))], LearningRate: 0.3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01, FTRLBeta: 1, FTRLL1: 0.1}
		switch divided := own.Kind == "adagrad" || own.Kind == "rowwise_adagrad"; {
		case divided && rng.IntN(2) == 0:
			own.TableL2 = 0.1
		case own.Kind != "ftrl":
			own.WeightDecay = 0.1
		}
		params := []*Param{param("a", data(1+rng.IntN(600))), param("linear", data(1+rng.IntN(300))), param("none", nil), param("b", data(3))}
		d, err := NewDense(cfg, params, Own{"linear", own})
		r.Must(err)
		for i, p := range params[:2] {
			began := make([]int64, len(p.Data))
			for v := range began {
				began[v] = int64(3 * v / len(began))
			}
			d.Begin(i, began)
		}
		what := fmt.Sprintf("%+v and %+v", cfg, own)
		x := newDeviceDense(r, d)
		for step := int64(4); step < 8; step++ {
			for _, p := range params {
				copy(p.Grad, data(len(p.Grad)))
			}
			scale := rng.Float32() * float32(min(step-4, 1)) // once 0, with which ftrl does nothing
			d.Step(step, scale)
			x.step(step, scale)
			x.same(what)
		}
		kernelrig.Set(r, x.flag, []int32{1})
		x.step(8, 1)
		x.same(what + " with the flag")
	})
}
