package optim

import "slices"

// With DenseConfig.Averaging, a model predicts with the moving average of its parameters over the
// last steps, in which the noise of single mini-batches cancels out (Polyak and Juditsky 1992). It
// is an exponential average, like Adam's of the gradients. After step t, for each parameter w and
// its average a:
//
//	a += max(1-averaging, 1/t) (w - a)
//
// So early on it is the plain mean over all steps, and nothing is left of the initial values.
// Training continues with w. The average takes as much memory as the parameters in training, and
// none in serving: files store the average under the parameter's name, and w as part of the
// optimizer's state.

// UnaveragedName names the tensor with a parameter's values after the last step.
func UnaveragedName(param string) string { return param + "/unaveraged" }

// initAverages starts the averages at the current values.
func (d *Dense) initAverages() {
	if d.cfg.Averaging == 0 {
		return
	}
	for _, p := range d.params {
		d.averages = append(d.averages, slices.Clone(p.Data))
	}
}

// Averages reports whether there are averages.
func (d *Dense) Averages() bool { return d.averages != nil }

// Average returns the values of a parameter that saved models have: its average, or its own values
// if there are no averages. Write to it to load a model.
func (d *Dense) Average(p *Param) []float32 {
	if i := slices.Index(d.params, p); d.averages != nil {
		return d.averages[i]
	}
	return p.Data
}

// Unaveraged returns the parameters after the last step, in order, if there are averages.
func (d *Dense) Unaveraged() []StateTensor {
	var out []StateTensor
	for i := range d.averages {
		out = append(out, StateTensor{Name: UnaveragedName(d.params[i].Name), Data: d.params[i].Data})
	}
	return out
}

// SwapAverages exchanges the parameters and their averages, if there are any. Between two calls, a
// network uses the averages.
func (d *Dense) SwapAverages() {
	for i, p := range d.params[:len(d.averages)] {
		p.Data, d.averages[i] = d.averages[i], p.Data
	}
}
