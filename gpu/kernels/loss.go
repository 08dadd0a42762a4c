package kernels

import "aibox/gpu"

var (
	kernelLoss     = declare("loss_terms", "wi ri ri ri r i")
	kernelLossGrad = declare("loss_grad", "wi ri ri ri ii")
)

// Loss computes the negative log-likelihood of each example, w·(softplus(z) − y·z), for logits z,
// labels y and weights w, which may be left out. All have one column. Check, a number in device
// memory, is added to each: see Optimize.
func (k *Set) Loss(s gpu.Stream, terms, z, y, w Matrix, check gpu.Region, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(terms, rows).reads(z, rows).reads(y, rows).perhaps(w, rows, z).add(gpu.Read(check)).ints(rows)
	return k.launch(s, kernelLoss, elements(rows, 1))
}

// LossGrad computes the derivative of the mean of the terms of Loss over all examples of the
// mini-batch, which are total: w·(sigmoid(z) − y)/total.
func (k *Set) LossGrad(s gpu.Stream, dz, z, y, w Matrix, total, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(dz, rows).reads(z, rows).reads(y, rows).perhaps(w, rows, z).ints(rows, total)
	return k.launch(s, kernelLossGrad, elements(rows, 1))
}
