package model

import (
	"sync"

	"aibox/reader"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/program"
)

// The tests of models run them on the machine that training uses. TestTape holds that
// machine against Gorgonia's.

type Inputs = program.Inputs

var ErrNotFinite = program.ErrNotFinite

// Result is the machine's with the gradients of all rows.
type Result struct {
	Loss     float64
	Logits   []float32 // (N)
	RowGrads []float32 // (U, RowDim)
}

var machines sync.Map // of models

func (m *Model) machine() *cpu.Machine {
	machine, ok := machines.Load(m)
	if !ok {
		machine, _ = machines.LoadOrStore(m, cpu.NewMachine(m.Network()))
	}
	return machine.(*cpu.Machine)
}

func (m *Model) Train(in *Inputs) (Result, error) {
	machine := m.machine()
	res, err := machine.Train(m.inverted(in))
	if err != nil {
		return Result{}, err
	}
	all := Result{Loss: res.Loss, Logits: res.Logits, RowGrads: make([]float32, len(in.Rows))}
	r := m.spec.RowDim()
	for i := range len(in.Rows) / r {
		machine.RowGrad(i, all.RowGrads[i*r:(i+1)*r])
	}
	return all, nil
}

// inverted returns inputs with their inverted index, as the reader makes it.
func (m *Model) inverted(in *Inputs) *Inputs {
	out := *in
	if in.Check(m.Network(), false) == nil {
		b := reader.Batch{Offsets: in.Offsets, Index: in.Index, BagWeights: in.BagWeights}
		b.Invert(len(in.Rows) / m.spec.RowDim())
		out.RowStarts, out.RowBags, out.RowWeights = b.RowStarts, b.RowBags, b.RowWeights
	}
	return &out
}

func (m *Model) Infer(in *Inputs) ([]float32, error) { return m.machine().Infer(in) }
