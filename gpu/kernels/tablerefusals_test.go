package kernels_test

import (
	"errors"
	"testing"

	"aibox/gpu"
	"aibox/gpu/kernels"
	"aibox/internal/kernel"
)

// Updates whose operands do not belong together are refused, and nothing is launched.
func TestUpdatesThatDoNotFit(t *testing.T) {
	k, s, m := refusing(t)
	part := func(i int) gpu.Region { return gpu.Part(m, 64*i, 64) }
	vector := func(i int) kernels.Matrix { return kernels.Matrix{Memory: m, Offset: 64 * i, Columns: 16, Stride: 16} }
	rows := kernels.TableBatch{Rows: 1, Fields: 1, Index: part(0), Starts: part(1), Bags: part(2)}
	update := func(t *kernels.Table, u kernels.RowUpdate) error {
		t.Rows, u.Constants, u.Step = part(3), part(4), part(5)
		return k.UpdateRows(s, part(6), part(7), t, &rows, &u, part(8), part(9), part(10))
	}
	for what, err := range map[string]error{
		"too few slots":               k.Optimize(s, part(0), part(5), part(1), kernel.FormulaAdam, vector(2), vector(3), kernels.Half{}, vector(4)),
		"sums of rows":                k.Optimize(s, part(0), part(5), part(1), kernel.FormulaRowwiseAdagrad, vector(2), vector(3), kernels.Half{}, vector(4)),
		"another state":               update(&kernels.Table{Values: 4, State: 4}, kernels.RowUpdate{Rest: kernel.FormulaAdam}),
		"no clock":                    update(&kernels.Table{Values: 4, State: 1, Decays: true}, kernels.RowUpdate{Rest: kernel.FormulaRowwiseAdagrad}),
		"another state if split":      update(&kernels.Table{Values: 4, State: 8}, kernels.RowUpdate{First: kernel.FormulaSGD, Rest: kernel.FormulaAdam, Split: true}),
		"momentum":                    update(&kernels.Table{Values: 4, State: 4}, kernels.RowUpdate{Rest: kernel.FormulaMomentum}),
		"momentum of the first value": update(&kernels.Table{Values: 4, State: 1}, kernels.RowUpdate{First: kernel.FormulaMomentum, Split: true}),
		"no keys":                     update(&kernels.Table{Values: 4, Format: kernels.BFloat16}, kernels.RowUpdate{}),
		"no room for means":           k.Pool(s, vector(0), &kernels.Bags{Fields: 1, Offsets: part(1), Index: part(2), Averaged: part(3)}, part(4), 16, 1),
		"clocks of rows without":      k.Settle(s, &kernels.Table{Rows: part(3), Values: 4}, &rows, part(4), part(5), part(6)),
		"factors of rows without":     k.Gather(s, &kernels.Table{Rows: part(3), Values: 4}, &rows, part(4), part(5), part(6)),
		"decay of rows, and no terms": k.Gather(s, &kernels.Table{Rows: part(3), Values: 4, State: 1, Decays: true}, &rows, part(4), gpu.Region{}, part(6)),
	} {
		if !errors.Is(err, gpu.InvalidArgument) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
