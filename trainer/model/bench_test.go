package model

import (
	"math/rand"
	"testing"

	"aibox/internal/kernel"
)

// dlrmSpec is the DLRM of the peers' table: 13 dense features, 26 fields,
// dimension 16, bottom 512-256-64-16, top 512-256-1.
func dlrmSpec() Spec {
	s := Spec{Kind: KindDLRM, EmbeddingDim: 16, BottomLayers: []int{512, 256, 64, 16}, HiddenLayers: []int{512, 256}, Seed: 1}
	for range 26 {
		s.Fields = append(s.Fields, "f")
	}
	for range 13 {
		s.Dense = append(s.Dense, "d")
	}
	return s
}

// oneHot draws a mini-batch of n examples with one feature per field, of which
// about a quarter are unique, as in the peers' workload (27,606 of 106,496).
func oneHot(rng *rand.Rand, spec Spec, n int) *Inputs {
	features := n * len(spec.Fields)
	in := &Inputs{N: n, Offsets: make([]int32, features+1), Index: make([]int32, features)}
	rows := features / 4
	for i := range in.Index {
		in.Offsets[i+1] = int32(i + 1)
		in.Index[i] = int32(rng.Intn(rows))
	}
	in.Rows = make([]float32, rows*spec.RowDim())
	for i := range in.Rows {
		in.Rows[i] = float32(rng.NormFloat64()) * 0.01
	}
	in.Dense = make([]float32, n*len(spec.Dense))
	for i := range in.Dense {
		in.Dense[i] = rng.Float32()
	}
	in.Labels = make([]float32, n)
	for i := range in.Labels {
		in.Labels[i] = float32(rng.Intn(2))
	}
	return in
}

func benchmarkTrain(b *testing.B, spec Spec, n int) {
	m := mustNew(b, spec)
	in := oneHot(rand.New(rand.NewSource(1)), spec, n)
	if _, err := m.Train(in); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		in.Step++
		if _, err := m.Train(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

func BenchmarkTrainDLRM(b *testing.B) { benchmarkTrain(b, dlrmSpec(), 2048) }

func BenchmarkInferDLRM(b *testing.B) {
	spec := dlrmSpec()
	m := mustNew(b, spec)
	in := oneHot(rand.New(rand.NewSource(1)), spec, 2048)
	for b.Loop() {
		if _, err := m.Infer(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2048*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkGemmDLRM is the matrix products of BenchmarkTrainDLRM alone: what
// no other part of the step can beat.
func BenchmarkGemmDLRM(b *testing.B) {
	const n = 2048
	spec := dlrmSpec()
	bottom := append([]int{len(spec.Dense)}, spec.BottomLayers...)
	vectors := len(spec.Fields) + 1
	top := append([]int{spec.EmbeddingDim + vectors*(vectors-1)/2}, append(spec.HiddenLayers, 1)...)
	for b.Loop() {
		for _, layers := range [][]int{bottom, top} {
			for l := 1; l < len(layers); l++ {
				in, out := layers[l-1], layers[l]
				x, w, y := scratch(n*in), scratch(in*out), scratch(n*out)
				kernel.Gemm(false, false, n, out, in, x, in, w, out, false, y, out)
				kernel.Gemm(true, false, in, out, n, x, in, y, out, false, w, out)
				if l > 1 || in != len(spec.Dense) {
					kernel.Gemm(false, true, n, in, out, y, out, w, out, false, x, in)
				}
			}
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
}

var buffers = map[int][]float32{}

func scratch(n int) []float32 {
	if buffers[n] == nil {
		buffers[n] = make([]float32, n)
	}
	return buffers[n]
}

// BenchmarkKinds trains one mini-batch of Criteo's shape on every kind.
func BenchmarkKinds(b *testing.B) {
	for _, kind := range Kinds() {
		b.Run(kind, func(b *testing.B) {
			s := dlrmSpec()
			s.Kind, s.CrossLayers = kind, 3
			benchmarkTrain(b, s, 2048)
		})
	}
}

// BenchmarkMachine trains DLRM with one example: what a mini-batch costs besides its
// examples.
func BenchmarkMachine(b *testing.B) { benchmarkTrain(b, dlrmSpec(), 1) }

// BenchmarkNew builds, differentiates and lowers the graphs of DLRM.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		mustNew(b, dlrmSpec())
	}
}
