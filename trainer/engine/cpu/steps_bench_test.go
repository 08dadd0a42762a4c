package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aibox/internal/kernel"
	"aibox/reader"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/model"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// kinds are the names of all ops that become steps: all but concatenations, which become views and
// copies.
var kinds = map[ops.Kind]string{
	program.KindCopy: "Copy", ops.KindActivate: "Activate", ops.KindActivateGrad: "ActivateGrad", ops.KindBagPool: "BagPool",
	ops.KindBagPoolGrad: "BagPoolGrad", ops.KindBatchStats: "BatchStats", ops.KindBatchNorm: "BatchNorm",
	ops.KindBatchNormGamma: "BatchNormGamma", ops.KindBatchNormInput: "BatchNormInput", ops.KindBias: "Bias",
	ops.KindColumns: "Columns", ops.KindColumnSum: "ColumnSum", ops.KindCross: "Cross", ops.KindDropout: "Dropout",
	ops.KindFM: "FM", ops.KindFMGrad: "FMGrad", ops.KindInteract: "Interact", ops.KindInteractGrad: "InteractGrad",
	ops.KindLinear: "Linear", ops.KindLoss: "Loss", ops.KindLossGrad: "LossGrad", ops.KindMatMul: "MatMul",
	ops.KindMultiply: "Multiply", ops.KindRepeat: "Repeat", ops.KindRowDot: "RowDot", ops.KindRowSum: "RowSum",
	ops.KindScaleVectors: "ScaleVectors", ops.KindScaleVectorsGrad: "ScaleVectorsGrad", ops.KindSpread: "Spread", ops.KindSum: "Sum",
}

// measured returns one step of each kind of op: the largest of those that networks of all kinds have
// with so many fields, dense features and elements of a vector.
func measured(t testing.TB, examples, fields, dense, dim int) map[ops.Kind]cpu.MeasuredStep {
	steps := map[ops.Kind]cpu.MeasuredStep{}
	size := func(s cpu.MeasuredStep) int { return s.Work.FMAs + s.Work.Bytes }
	for _, kind := range model.Kinds() {
		for _, s := range []model.Spec{
			{HiddenLayers: []int{512, 256}, BottomLayers: []int{64, dim}},
			{HiddenLayers: []int{512, 256}, BottomLayers: []int{64, dim}, BatchNorm: true, Dropout: 0.1, DenseVectors: kind == model.KindFM || kind == model.KindDeepFM},
			{HiddenLayers: []int{512, 256}}, // without dense features
		} {
			s.Kind, s.CrossLayers, s.EmbeddingDim, s.Activation = kind, 2, dim, "relu"
			s.Fields = make([]string, fields)
			if s.BottomLayers != nil {
				s.Dense = make([]string, dense)
			}
			m, err := model.New(s)
			if err != nil {
				t.Fatal(err)
			}
			machine := cpu.NewMachine(m.Network(), engine.Float32)
			if _, err := machine.Train(criteoLike(examples, s)); err != nil {
				t.Fatal(err)
			}
			for _, step := range machine.Steps() {
				if have, ok := steps[step.Kind]; !ok || size(step) > size(have) {
					steps[step.Kind] = step
				}
			}
		}
	}
	return steps
}

// criteoLike draws a mini-batch with bags of one value.
func criteoLike(n int, s model.Spec) *program.Inputs {
	random := rand.New(rand.NewPCG(1, 0))
	rows := max(n*len(s.Fields)/4, 1)
	b := reader.Batch{Offsets: []int32{0}}
	for i := range n * len(s.Fields) {
		b.Index = append(b.Index, int32(random.IntN(rows)))
		b.Offsets = append(b.Offsets, int32(i+1))
	}
	b.Invert(rows)
	in := &program.Inputs{
		N: n, Rows: make([]float32, rows*s.RowDim()), Offsets: b.Offsets, Index: b.Index, RowStarts: b.RowStarts, RowBags: b.RowBags,
		Dense: make([]float32, n*len(s.Dense)), Labels: make([]float32, n), Step: 1,
	}
	for _, x := range [][]float32{in.Rows, in.Dense} {
		for i := range x {
			x[i] = float32(random.NormFloat64()) * 0.1
		}
	}
	return in
}

// BenchmarkOps runs a step of each op alone on one thread, over the tiles of a mini-batch of 2,048
// examples like Criteo's, beside what the processor can do.
func BenchmarkOps(b *testing.B) {
	defer kernel.SetThreads(0)
	kernel.SetThreads(1)
	steps := measured(b, 2048, 26, 13, 16)
	for kind := range ops.KindSum + 1 {
		s, ok := steps[kind]
		if !ok {
			continue
		}
		b.Run(fmt.Sprintf("%s/columns=%d", kinds[kind], s.Out[0].Columns), func(b *testing.B) {
			for b.Loop() {
				s.Run()
			}
			kernel.ReportLimits(b, b.N, s.Work)
		})
	}
}

// TestEveryOpIsMeasured: BenchmarkOps has every op that is a step of some network.
func TestEveryOpIsMeasured(t *testing.T) {
	defer kernel.SetThreads(0)
	kernel.SetThreads(1)
	steps := measured(t, 70, 3, 2, 4)
	for kind := range ops.KindSum + 1 {
		s, ok := steps[kind]
		if kind == ops.KindConcat {
			continue
		}
		if !ok || kinds[kind] == "" {
			t.Errorf("no network has a step of kind %d (%s)", kind, kinds[kind])
			continue
		}
		s.Run()
		if s.Work.FMAs == 0 && s.Work.Bytes == 0 {
			t.Errorf("%s has nothing to do", kinds[kind])
		}
	}
}
