package optim

import (
	"math"
	"sort"

	"aibox/internal/kernel"
)

// A step of Dense is first described by a list of updates, and then carried out, either here on the
// CPU or on a device that has copies of the parameters and of their state.

// Update is what a step does to values Lo to Hi of parameter Param.
type Update struct {
	Param, Lo, Hi int
	Group         Group
	kernel.Update
}

// Group is what an update depends on besides the step. All updates of a group are the same in every
// step, until Begin or UnmarshalJSON changes the steps that values have taken.
type Group struct {
	Config int   // Dense.Config of the parameter
	Began  int64 // the step of the model after which the state was zero
}

// Config numbers the configurations of optimizers: parameters with equal configurations have the
// same number.
func (d *Dense) Config(i int) int { return d.configs[i] }

// numberConfigs returns Dense.Config of all parameters, 0 for those without an optimizer of their
// own.
func numberConfigs(own []*Rows) []int {
	numbers, seen := make([]int, len(own)), map[RowConfig]int{}
	for i, r := range own {
		if r == nil {
			continue
		}
		if seen[r.cfg] == 0 {
			seen[r.cfg] = len(seen) + 1
		}
		numbers[i] = seen[r.cfg]
	}
	return numbers
}

// Updates returns what Step does to the parameters: updates of all values, in order, which are
// independent of one another. With averaging, an Averager follows. The slice is valid until the
// next call of Updates or Step.
func (d *Dense) Updates(t int64, lrScale float32) []Update {
	d.updates = d.updates[:0]
	for i, p := range d.params {
		d.together(i, 0, p.Size(), t, func(lo, hi int, steps int64) {
			d.updates = append(d.updates, Update{Param: i, Lo: lo, Hi: hi, Group: Group{d.configs[i], t - steps}, Update: d.update(i, steps, lrScale)})
		})
	}
	return d.updates
}

// Averager returns what step t does to the averages, if there are any: an update of them whose
// gradients are the parameters after the step.
func (d *Dense) Averager(t int64) (u kernel.Update, has bool) {
	// a -= -share (w - a)
	share := max(1-d.cfg.Averaging, 1/float64(t))
	return kernel.Update{Formula: kernel.FormulaSGD, Shrink: 1, L2: -1, Rate: -float32(share)}, d.averages != nil
}

// Slots returns the state of parameter i: one slice of the parameter's length for each part of the
// state that the formula of its updates has.
func (d *Dense) Slots(i int) [][]float32 { return d.slots[i][:len(d.slotNames(i))] }

// update returns step t of values of parameter i whose state was zero before step 1.
func (d *Dense) update(i int, t int64, lrScale float32) kernel.Update {
	if d.own[i] != nil {
		return d.own[i].everyStep(t, lrScale)
	}
	c := &d.cfg
	rate := float64(c.LearningRate * float64(lrScale))
	u := kernel.Update{Shrink: 1, L2: float32(c.L2), Rate: float32(rate), Epsilon: float32(c.Epsilon)}
	switch c.Kind {
	case "sgd":
		u.Formula = kernel.FormulaSGD
	case "momentum":
		u.Formula, u.Momentum = kernel.FormulaMomentum, float32(c.Momentum)
	case "adagrad":
		u.Formula = kernel.FormulaAdagrad
	case "adamw":
		u.Shrink = float32(1 - float64(rate*c.WeightDecay))
		fallthrough
	case "adam":
		u.Formula, u.Beta2, u.Rest1, u.Rest2 = kernel.FormulaAdam, float32(c.Beta2), float32(1-c.Beta1), float32(1-c.Beta2)
		u.Rate = float32(rate / (1 - powInt(c.Beta1, t)))
		u.Scale = float32(math.Sqrt(1 - powInt(c.Beta2, t)))
	}
	return u
}

// everyStep is update t of values, each of them a row that every step uses.
func (r *Rows) everyStep(t int64, lrScale float32) kernel.Update {
	u := r.step(t, lrScale)
	u.L2 += float32(r.cfg.TableL2) // every step uses the weight, so this is ordinary L2
	if u.Formula == kernel.FormulaRowwiseAdagrad {
		u.Formula = kernel.FormulaAdagrad
	}
	if _, rate := r.DecayRates(); rate > 0 {
		u.Shrink = float32(1 - float64(rate*float64(lrScale)))
	}
	return u
}

// stepGrain is the number of values that are worth a thread: some microseconds of work.
const stepGrain = 8 << 10

// Step updates every parameter by its gradient, on kernel.Threads threads. t is the number of the
// model's step, 1 for the first. lrScale multiplies the learning rate.
func (d *Dense) Step(t int64, lrScale float32) {
	d.Updates(t, lrScale)
	d.averager, _ = d.Averager(t)
	kernel.Parallel(d.starts[len(d.params)], stepGrain, d.task)
}

// stepValues updates values lo to hi, counted through all parameters.
func (d *Dense) stepValues(lo, hi int) {
	first := sort.Search(len(d.updates), func(i int) bool { return d.starts[d.updates[i].Param]+d.updates[i].Hi > lo })
	for i := first; lo < hi; i++ {
		u := &d.updates[i]
		start := d.starts[u.Param]
		end := min(hi, start+u.Hi)
		d.step(u, lo-start, end-start)
		lo = end
	}
}

// step updates values lo to hi of the parameter of u, and their averages.
func (d *Dense) step(u *Update, lo, hi int) {
	p := d.params[u.Param]
	var state [2][]float32
	for i, s := range d.Slots(u.Param) {
		state[i] = s[lo:hi]
	}
	u.Step(p.Data[lo:hi], p.Grad[lo:hi], state[0], state[1])
	if d.averages != nil {
		d.averager.Step(d.averages[u.Param][lo:hi], p.Data[lo:hi], nil, nil)
	}
}
