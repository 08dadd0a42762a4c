package kernels

import "aibox/gpu"

// Activation is a function of single elements whose derivative can be computed from its result.
// The functions are those of ops.Activation, with the same numbers.
type Activation uint8

// The activations.
const (
	Identity  Activation = iota
	ReLU                 // max(x, 0)
	LeakyReLU            // x where x > 0, else 0.01·x
	Tanh
	Sigmoid
)

var (
	kernelActivate     = declare("activate", "wi ri iii")
	kernelActivateGrad = declare("activate_grad", "wi ri ri iii")
	kernelEpilogue     = declare("epilogue", "ui ri iii")
	kernelDerive       = declare("derive", "ui ri iii")
)

// Activate computes y = a(x).
func (k *Set) Activate(s gpu.Stream, a Activation, y, x Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(y, rows).reads(x, rows).ints(rows, y.Columns, int(a))
	return k.launch(s, kernelActivate, elements(rows, y.Columns))
}

// ActivateGrad computes dx = dy·a'(x) where y = a(x). At kinks the derivative is that of the left
// side.
func (k *Set) ActivateGrad(s gpu.Stream, a Activation, dx, y, dy Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().writes(dx, rows).reads(y, rows).reads(dy, rows).ints(rows, dx.Columns, int(a))
	return k.launch(s, kernelActivateGrad, elements(rows, dx.Columns))
}

// Epilogue completes a layer in place, after its product: y = a(y + bias). The bias (1 row) may be
// left out.
func (k *Set) Epilogue(s gpu.Stream, a Activation, y, bias Matrix, rows int) error {
	if rows == 0 || !bias.given() && a == Identity {
		return nil
	}
	k.with().updates(y, rows).perhaps(bias, 1, y).ints(rows, y.Columns, int(a))
	return k.launch(s, kernelEpilogue, elements(rows, y.Columns))
}

// Derive multiplies dx by the derivative of a, in place: dx = dx·a'(x) where y = a(x).
func (k *Set) Derive(s gpu.Stream, a Activation, dx, y Matrix, rows int) error {
	if rows == 0 || a == Identity {
		return nil
	}
	k.with().updates(dx, rows).reads(y, rows).ints(rows, dx.Columns, int(a))
	return k.launch(s, kernelDerive, elements(rows, dx.Columns))
}
