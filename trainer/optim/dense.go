package optim

import (
	"errors"
	"fmt"

	"aibox/internal/kernel"
)

// StateTensor is a part of the optimizer's state. Data is the state itself: read it to save the
// state, write to it to load it.
type StateTensor struct {
	Name string // parameter "/" slot, for instance "top.0.weight/exp_avg"
	Data []float32
}

// Dense updates the parameters of the dense network.
type Dense struct {
	cfg     DenseConfig
	own     []*Rows // per parameter; nil if cfg applies
	configs []int   // per parameter; see Config
	params  []*Param
	slots   [][2][]float32 // per parameter; named by slotNames
	began   [][]stretch    // per parameter; nil if the state of all values began with step 1
	starts  []int          // offset of each parameter, in values, and the end of the last one

	averages [][]float32 // per parameter; nil without averaging

	// The current step; task is stepValues, bound once so that a step allocates nothing.
	updates  []Update
	averager kernel.Update
	task     func(lo, hi int)
}

// Own gives a parameter an optimizer of its own, which updates each of its values as a row of one
// value that occurs in every step.
type Own struct {
	Param  string
	Config RowConfig
}

// slotNames are PyTorch's names for the state of each kind.
var slotNames = map[string][]string{
	"sgd":      nil,
	"momentum": {"momentum_buffer"},
	"adagrad":  {"sum"},
	"adam":     {"exp_avg", "exp_avg_sq"},
	"adamw":    {"exp_avg", "exp_avg_sq"},
}

// ownSlotNames are the names for the kinds of Own; those of ftrl are from its paper.
var ownSlotNames = map[string][]string{
	"sgd":             nil,
	"adagrad":         {"sum"},
	"rowwise_adagrad": {"sum"},
	"adam":            {"exp_avg", "exp_avg_sq"},
	"ftrl":            {"z", "n"},
}

// NewDense returns an optimizer for params in its initial state. It reports all faults of cfg, own
// and params. An Own whose parameter does not exist has no effect. For the parameters of an outline
// its state is an outline, too: Slots and Updates say how much state there would be.
func NewDense(cfg DenseConfig, params []*Param, own ...Own) (*Dense, error) {
	errs := []error{cfg.validate()}
	seen := map[string]bool{}
	rows := make([]*Rows, len(params))
	for i, p := range params {
		for _, o := range own {
			if o.Param == p.Name {
				var err error
				rows[i], err = NewRows(o.Config, 1)
				errs = append(errs, err)
			}
		}
		if n := p.Size(); (len(p.Data) != n || len(p.Grad) != n) && !p.outlined() {
			errs = append(errs, fmt.Errorf("optim: parameter %s of shape %v has %d values and %d gradients", p.Name, p.Shape, len(p.Data), len(p.Grad)))
		}
		if seen[p.Name] {
			errs = append(errs, fmt.Errorf("optim: two parameters are named %s", p.Name))
		}
		seen[p.Name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Dense{cfg: cfg, own: rows, params: params, slots: make([][2][]float32, len(params)), began: make([][]stretch, len(params)), starts: make([]int, len(params)+1)}
	d.task, d.configs = d.stepValues, numberConfigs(rows)
	d.initAverages()
	for i, p := range params {
		d.starts[i+1] = d.starts[i] + p.Size()
		for s := range d.slotNames(i) {
			d.slots[i][s] = make([]float32, len(p.Data))
		}
		if rows[i] != nil {
			rows[i].initSlots(p.Data, d.slots[i])
		} else if cfg.Kind == "adagrad" {
			fill(d.slots[i][0], float32(cfg.InitialAccumulator))
		}
	}
	return d, nil
}

// kind returns the kind of the optimizer of parameter i.
func (d *Dense) kind(i int) string {
	if r := d.own[i]; r != nil {
		return r.cfg.Kind
	}
	return d.cfg.Kind
}

// slotNames returns the names of the parts of the state of parameter i.
func (d *Dense) slotNames(i int) []string {
	if r := d.own[i]; r != nil {
		return ownSlotNames[r.cfg.Kind]
	}
	return slotNames[d.cfg.Kind]
}

func fill(s []float32, x float32) {
	for i := range s {
		s[i] = x
	}
}

// State returns the state of the updates, in the order of the parameters. It has neither the
// numbers of steps, which Steps returns, nor the averages.
func (d *Dense) State() []StateTensor {
	var out []StateTensor
	for i, p := range d.params {
		for s, name := range d.slotNames(i) {
			out = append(out, StateTensor{Name: p.Name + "/" + name, Data: d.slots[i][s]})
		}
	}
	return out
}
