package optim

import (
	"fmt"
	"math"

	"aibox/internal/kernel"
)

// Rows updates rows of the sparse table. Any number of goroutines may use it at the same time for
// different rows.
type Rows struct {
	cfg      RowConfig
	valueDim int   // number of values that cfg applies to: all, or all but the first
	linear   *Rows // of the first value, the linear weight, if it has an optimizer of its own; else nil
	words    int   // state words of linear
}

// NewRows returns an optimizer for rows of valueDim values. It reports all faults of cfg.
func NewRows(cfg RowConfig, valueDim int) (*Rows, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if valueDim < 1 {
		return nil, fmt.Errorf("optim: rows of %d values", valueDim)
	}
	return &Rows{cfg: cfg, valueDim: valueDim}, nil
}

// NewLinearRows returns an optimizer for rows of valueDim values. The first value, the linear
// weight, has an optimizer of its own.
func NewLinearRows(linear, cfg RowConfig, valueDim int) (*Rows, error) {
	first, err := NewRows(linear, 1)
	if err != nil {
		return nil, err
	}
	r, err := NewRows(cfg, valueDim-1)
	if err != nil {
		return nil, err
	}
	if linear.WeightDecay > 0 && cfg.TableL2 > 0 || linear.TableL2 > 0 && cfg.WeightDecay > 0 {
		return nil, fmt.Errorf("optim: weight_decay of one optimizer of rows and table_l2 of the other: want the same of both")
	}
	r.linear, r.words = first, first.StateDim()
	return r, nil
}

// StateDim returns the number of state words of a row:
//
//	sgd              none
//	adagrad          s (valueDim)
//	rowwise_adagrad  s (1)
//	adam             m (valueDim), v (valueDim)
//	ftrl             z (valueDim), n (valueDim)
//
// If the linear weight has an optimizer of its own, its words come first.
func (r *Rows) StateDim() int {
	n := 0
	for _, p := range r.Parts() {
		n += p.Words()
	}
	return n
}

// Part is a part of a row's state: one word for each of some values, or one word for all of them.
type Part struct {
	First, Values int // the values of the row that it belongs to
	Shared        bool
}

// Words returns the number of words of the part.
func (p Part) Words() int {
	if p.Shared {
		return 1
	}
	return p.Values
}

// Parts returns the parts of a row's state, in order.
func (r *Rows) Parts() []Part {
	var parts []Part
	first := 0
	if r.linear != nil {
		parts, first = r.linear.Parts(), 1
	}
	each := Part{First: first, Values: r.valueDim}
	switch r.cfg.Kind {
	case "sgd":
	case "rowwise_adagrad":
		parts = append(parts, Part{First: first, Values: r.valueDim, Shared: true})
	case "adagrad":
		parts = append(parts, each)
	default:
		parts = append(parts, each, each)
	}
	return parts
}

// Init fills the state of a new row whose values are already set.
func (r *Rows) Init(values, state []float32) {
	if r.linear != nil {
		r.linear.Init(values[:1], state[:r.words])
		values, state = values[1:], state[r.words:]
	}
	n := min(len(values), len(state))
	r.initSlots(values, [2][]float32{state[:n], state[n:]})
}

// initSlots is Init for the values of one optimizer, with its state in two slices.
func (r *Rows) initSlots(values []float32, state [2][]float32) {
	switch r.cfg.Kind {
	case "adagrad", "rowwise_adagrad":
		fill(state[0], float32(r.cfg.InitialAccumulator))
	case "adam":
		clear(state[0])
		clear(state[1])
	case "ftrl":
		z, n := state[0], state[1]
		fill(n, float32(r.cfg.InitialAccumulator))
		step := r.step(1, 1)
		ftrl := step.FTRL()
		for i, w := range values {
			z[i] = ftrl.Dual(w, n[i])
		}
	}
}

// RowStep is the update of rows in one step. It may be copied, and used by any number of goroutines
// for different rows.
type RowStep struct {
	Rest       kernel.Update // of all values, or of all but the first
	First      kernel.Update // of the first value, if split
	Split      bool
	FirstWords int // state words of the first value, if split
}

// HasSteps reports whether row updates depend on the number of steps since the row's state was
// zero.
func (r *Rows) HasSteps() bool {
	return hasSteps(r.cfg.Kind) || r.linear != nil && r.linear.HasSteps()
}

// Settled reports whether row updates no longer change with the number of steps, from the given
// number on.
func (r *Rows) Settled(steps int64) bool {
	return settled(steps, r.cfg.Beta1, r.cfg.Beta2) && (r.linear == nil || r.linear.Settled(steps))
}

// Step prepares the update of rows in step t since their state was zero, 1 for the first. lrScale
// multiplies the learning rate.
func (r *Rows) Step(t int64, lrScale float32) RowStep {
	s := RowStep{Rest: r.step(t, lrScale)}
	if r.linear != nil {
		s.First, s.Split, s.FirstWords = r.linear.step(t, lrScale), true, r.words
	}
	return s
}

var rowFormulas = map[string]kernel.Formula{
	"sgd":             kernel.FormulaSGD,
	"adagrad":         kernel.FormulaAdagrad,
	"rowwise_adagrad": kernel.FormulaRowwiseAdagrad,
	"adam":            kernel.FormulaAdam,
	"ftrl":            kernel.FormulaFTRL,
}

func (r *Rows) step(t int64, lrScale float32) kernel.Update {
	c := &r.cfg
	rate := float64(c.LearningRate * float64(lrScale))
	u := kernel.Update{Formula: rowFormulas[c.Kind], Shrink: 1, L2: float32(c.L2), Rate: float32(rate), Epsilon: float32(c.Epsilon)}
	switch c.Kind {
	case "adam":
		u.Beta2, u.Rest1, u.Rest2 = float32(c.Beta2), float32(1-c.Beta1), float32(1-c.Beta2)
		// sqrt(v)/1: SparseAdam corrects v's bias in the step size instead.
		u.Scale = 1
		u.Rate = float32(float64(rate*math.Sqrt(1-powInt(c.Beta2, t))) / (1 - powInt(c.Beta1, t)))
	case "ftrl":
		u.Beta, u.Lambda1, u.Lambda2 = float32(c.FTRLBeta), float32(c.FTRLL1), float32(c.FTRLL2)
	}
	return u
}

// Update updates one row: values and grad (valueDim), state (StateDim).
func (s *RowStep) Update(values, state, grad []float32) {
	if s.Split {
		updateRow(&s.First, values[:1], state[:s.FirstWords], grad[:1])
		values, state, grad = values[1:], state[s.FirstWords:], grad[1:]
	}
	updateRow(&s.Rest, values, state, grad)
}

// updateRow applies an update to values whose state is contiguous.
func updateRow(u *kernel.Update, values, state, grad []float32) {
	n := min(len(values), len(state))
	u.Step(values, grad, state[:n], state[n:])
}
