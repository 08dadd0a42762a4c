package optim

import (
	"math"
	"slices"
	"testing"

	"aibox/gpu"
	"aibox/gpu/emulated"
	"aibox/gpu/kernels"
	"aibox/gpu/kernels/kernelrig"
	"aibox/internal/testseed"
)

// deviceDense is copies of parameters, optimizer state and averages on a device.
type deviceDense struct {
	*kernelrig.Rig
	dense                   *Dense
	flag                    gpu.Region
	params, grads, averages []kernels.Matrix
	slots                   [][]kernels.Matrix
}

func newDeviceDense(r *kernelrig.Rig, d *Dense) *deviceDense {
	x := &deviceDense{Rig: r, dense: d, flag: kernelrig.Put(r, []int32{0})}
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
		x.Must(x.Optimize(x.Stream, x.flag, of(1+i), u.Formula, w, x.grads[u.Param].Slice(u.Lo, u.Hi), slots...))
	}
	for i, a := range x.averages {
		if averages {
			x.Must(x.Optimize(x.Stream, x.flag, of(0), averager.Formula, a, x.params[i]))
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

// TestKernels: devices update parameters of all kinds as the host does, with optimizers of single parameters, state that began in
// different steps, and averages; and a flag stops them.
func TestKernels(t *testing.T) {
	kernelrig.Each(t, func(t *testing.T, images map[string]emulated.Kernels) {
		seed := testseed.Of(t)
		rng := testseed.Rand(t)
		data := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(rng.NormFloat64())
			}
			return v
		}
		for name, cfg := range denseConfigs {
			for _, own := range []string{"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"} {
				cfg.Averaging = float64(rng.IntN(2)) * 0.9
				c := RowConfig{Kind: own, LearningRate: 0.3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3, InitialAccumulator: 0.2, L2: 0.01, FTRLBeta: 1, FTRLL1: 0.1}
				switch divided := own == "adagrad" || own == "rowwise_adagrad"; {
				case divided && rng.IntN(2) == 0:
					c.TableL2 = 0.1
				case own != "ftrl":
					c.WeightDecay = 0.1
				}
				params := []*Param{param("a", data(1+rng.IntN(600))), param("linear", data(1+rng.IntN(300))), param("none", nil), param("b", data(3))}
				d, err := NewDense(cfg, params, Own{"linear", c})
				if err != nil {
					t.Fatal(err)
				}
				for i, p := range params[:2] {
					began := make([]int64, len(p.Data))
					for v := range began {
						began[v] = int64(3 * v / len(began))
					}
					d.Begin(i, began)
				}
				x := newDeviceDense(kernelrig.New(t, images, seed), d)
				for step := int64(4); step < 8; step++ {
					for _, p := range params {
						copy(p.Grad, data(len(p.Grad)))
					}
					scale := rng.Float32() * float32(min(step-4, 1)) // once 0, with which ftrl does nothing
					d.Step(step, scale)
					x.step(step, scale)
					x.same(name + " and " + own)
				}
				kernelrig.Set(x.Rig, x.flag, []int32{1})
				before := kernelrig.Get[float32](x.Rig, x.params[0].Region(1))
				x.step(8, 1)
				if after := kernelrig.Get[float32](x.Rig, x.params[0].Region(1)); !slices.Equal(before, after) {
					t.Fatalf("%s: the flag is set, and parameters change", name)
				}
				x.same(name + " and " + own + " with the flag")
			}
		}
	})
}
