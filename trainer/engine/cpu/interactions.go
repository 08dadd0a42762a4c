package cpu

import (
	"aibox/internal/kernel"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// extraElements returns how many elements of scratch memory a step needs.
func extraElements(s *program.Step) int {
	switch s.Kind {
	case ops.KindFM, ops.KindFMGrad:
		return s.Dim
	case ops.KindBatchNorm:
		return s.Out[0].Columns
	case ops.KindBatchNormInput:
		return 3 * s.Out[0].Columns
	case ops.KindLoss, ops.KindLossGrad:
		return tileExamples
	}
	return 0
}

// sumVectors writes Σ_f v into sum, f ascending.
func sumVectors(sum, row []float32) {
	clear(sum)
	for f := 0; f < len(row); f += len(sum) {
		for d, x := range row[f:][:len(sum)] {
			sum[d] += x
		}
	}
}

// factorize computes the sum over all pairs from the sum of the vectors: Σ_f v·(Σ v − v) counts
// every pair twice. Unlike the textbook form, it does not subtract two nearly equal numbers.
func (t *tile) factorize(s *program.Step, y, x matrix) {
	sum := t.scratch.extra[:s.Dim]
	for i := range t.n {
		row := x.row(i)
		sumVectors(sum, row)
		var total float32
		for f := 0; f < len(row); f += s.Dim {
			v := row[f:][:len(sum)]
			for d, s := range sum {
				total += float32(v[d] * (s - v[d]))
			}
		}
		y.row(i)[0] = 0.5 * total
	}
}

func (t *tile) factorizeGrad(s *program.Step, dx, x, dy matrix) {
	sum := t.scratch.extra[:s.Dim]
	for i := range t.n {
		row, out, g := x.row(i), dx.row(i), dy.row(i)[0]
		sumVectors(sum, row)
		for f := 0; f < len(row); f += s.Dim {
			v, o := row[f:][:len(sum)], out[f:][:len(sum)]
			for d, s := range sum {
				o[d] = g * (s - v[d])
			}
		}
	}
}

// interact computes the dot products of all pairs of each example's vectors.
func (t *tile) interact(s *program.Step, y, x matrix) {
	t.scratch.gemm.Interact(t.n, x.columns/s.Dim, s.Dim, x.data, x.stride, y.data, y.stride)
}

// interactGrad computes the gradient of each vector: the sum of the other vectors times the
// gradients of their pairs.
func (t *tile) interactGrad(s *program.Step, dx, x, dy matrix) {
	t.scratch.gemm.InteractBackward(t.n, x.columns/s.Dim, s.Dim, x.data, x.stride, dy.data, dy.stride, dx.data, dx.stride)
}

// scaleVectors multiplies each vector of v by its number in x. The vectors are the same for all
// examples; in the derivative, each example has its own.
func (t *tile) scaleVectors(s *program.Step, y, x, v matrix) {
	for i := range t.n {
		vectors, out := v.row(0), y.row(i)
		if s.Kind == ops.KindScaleVectorsGrad {
			vectors = v.row(i)
		}
		copy(out, vectors)
		for f, factor := range x.row(i) {
			kernel.Scale(factor, out[f*s.Dim:][:s.Dim])
		}
	}
}
