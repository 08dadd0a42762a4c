package optim

import "slices"

// With DenseConfig.Averaging, what a model predicts with is not the parameters as the last step
// left them, but their moving average over the last steps, in which the noise of single
// mini-batches cancels out (Polyak and Juditsky 1992; an exponential average, as Adam's of the
// gradients). After step t, for each parameter w and its average a:
//
//	a += max(1-averaging, 1/t) (w - a)
//
// So early on it is the plain mean of all steps, and nothing is left of the initial values. Training goes on
// with w. The average takes as much memory as the parameters, and nothing when the model serves: files have
// it under the parameter's name, and w as a part of the optimizer's state.

// UnaveragedName is the name of the tensor with a parameter as the last step left it.
func UnaveragedName(param string) string { return param + "/unaveraged" }

// initAverages begins the averages with the present values.
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

// Average returns what models that are saved have as the values of a parameter: its average, or its values if
// there are no averages. Write it to load a model.
func (d *Dense) Average(p *Param) []float32 {
	if i := slices.Index(d.params, p); d.averages != nil {
		return d.averages[i]
	}
	return p.Data
}

// Unaveraged returns the parameters as the last step left them, in the order of the parameters, if
// there are averages.
func (d *Dense) Unaveraged() []StateTensor {
	var out []StateTensor
	for i := range d.averages {
		out = append(out, StateTensor{Name: UnaveragedName(d.params[i].Name), Data: d.params[i].Data})
	}
	return out
}

// SwapAverages exchanges the parameters and their averages, if there are any: a network that is run between
// one call and the next uses the averages.
func (d *Dense) SwapAverages() {
	for i, p := range d.params[:len(d.averages)] {
		p.Data, d.averages[i] = d.averages[i], p.Data
	}
}
