package model

import (
	"sync"
	"testing"

	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/ops"
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

// precision is that of all machines of models and of Gorgonia's: see eachPrecision.
var precision engine.Precision

// eachPrecision runs a test in every precision.
func eachPrecision(t *testing.T, test func(t *testing.T)) {
	defer func() { precision, ops.BF16 = engine.Float32, engine.Float32.Rounds }()
	for _, p := range []engine.Precision{engine.Float32, engine.BF16} {
		precision, ops.BF16 = p, p.Rounds
		t.Run(p.String(), test)
	}
}

type machineKey struct {
	model     *Model
	precision engine.Precision
}

var machines sync.Map // by machineKey

func (m *Model) machine() *cpu.Machine {
	key := machineKey{m, precision}
	machine, ok := machines.Load(key)
	if !ok {
		machine, _ = machines.LoadOrStore(key, cpu.NewMachine(m.Network(), precision))
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
