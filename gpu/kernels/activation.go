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
	kernelActivate        = declare("activate", "wi ri iii")
	kernelActivateGrad    = declare("activate_grad", "wi ri ri iii")
	kernelEpilogue        = declare("epilogue", "ui ri iii")
	kernelEpilogueBF16    = declare("epilogue_bf16", "wi ri ri iii")
	kernelDerive          = declare("derive", "w ui ri iii")
	kernelDeriveBF16      = declare("derive_bf16", "w ui ri iii")
	kernelDeriveFromBF16  = declare("derive_from_bf16", "w ui ri iii")
	kernelDeriveOuter     = declare("derive_outer", "w wi ri ri ri iii")
	kernelDeriveOuterBF16 = declare("derive_outer_bf16", "w wi ri ri ri iii")
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

// Epilogue completes a layer in place, after its product: y = a(y + bias). The bias (1 row) is
// optional.
func (k *Set) Epilogue(s gpu.Stream, a Activation, y, bias Matrix, rows int) error {
	if rows == 0 || !bias.given() && a == Identity {
		return nil
	}
	k.with().updates(y, rows).perhaps(bias, 1, y).ints(rows, y.Columns, int(a))
	return k.launch(s, kernelEpilogue, elements(rows, y.Columns))
}

// EpilogueBF16 is Epilogue for a result that is needed only in bfloat16: y = a(x + bias), rounded
// as ToBF16 does.
func (k *Set) EpilogueBF16(s gpu.Stream, a Activation, y Half, x, bias Matrix, rows int) error {
	if rows == 0 {
		return nil
	}
	k.with().add(gpu.Write(y.Region(rows))).ints(y.Stride).reads(x, rows).perhaps(bias, 1, x).ints(rows, x.Columns, int(a))
	return k.launch(s, kernelEpilogueBF16, elements(rows, x.Columns))
}

// Derive multiplies dx by the derivative of a, in place: dx = dx·a'(x) where y = a(x). It leaves
// partial sums of the columns of dx in work, memory of at least WorkBytes(rows, dx.Columns), for
// FinishSums.
func (k *Set) Derive(s gpu.Stream, a Activation, dx, y Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelDerive, pairBlocks, dx.Columns, rows, work, func() {
		k.updates(dx, rows).reads(y, rows).ints(rows, dx.Columns, int(a))
	})
}

// DeriveBF16 is Derive in bfloat16, with results rounded as ToBF16 does. The sums are those of the
// unrounded numbers.
func (k *Set) DeriveBF16(s gpu.Stream, a Activation, dx Half, y Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelDeriveBF16, pairBlocks, dx.Columns, rows, work, func() {
		k.add(gpu.Update(dx.Region(rows))).ints(dx.Stride).reads(y, rows).ints(rows, dx.Columns, int(a))
	})
}

// DeriveFromBF16 is DeriveBF16 with y in bfloat16, too.
func (k *Set) DeriveFromBF16(s gpu.Stream, a Activation, dx, y Half, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelDeriveFromBF16, pairBlocks, dx.Columns, rows, work, func() {
		k.add(gpu.Update(dx.Region(rows))).ints(dx.Stride).add(gpu.Read(y.Region(rows))).ints(y.Stride, rows, dx.Columns, int(a))
	})
}

// DeriveOuter computes dx = (g·wᵀ)·a'(x) where y = a(x), and g and w have one column: what a layer
// with one output passes down. Work is as with Derive.
func (k *Set) DeriveOuter(s gpu.Stream, a Activation, dx, g, w, y Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelDeriveOuter, pairBlocks, dx.Columns, rows, work, func() {
		k.writes(dx, rows).reads(g, rows).reads(w, dx.Columns).reads(y, rows).ints(rows, dx.Columns, int(a))
	})
}

// DeriveOuterBF16 is DeriveOuter for a result that is needed only in bfloat16, rounded as ToBF16
// does. The sums are those of the unrounded numbers.
func (k *Set) DeriveOuterBF16(s gpu.Stream, a Activation, dx Half, g, w, y Matrix, rows int, work gpu.Region) error {
	return k.sumChunks(s, kernelDeriveOuterBF16, pairBlocks, dx.Columns, rows, work, func() {
		k.add(gpu.Write(dx.Region(rows))).ints(dx.Stride).reads(g, rows).reads(w, dx.Columns).reads(y, rows).ints(rows, dx.Columns, int(a))
	})
}
