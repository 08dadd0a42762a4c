package cpu

import (
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// extraElements is how much memory a step needs beside its results.
func extraElements(s *program.Step) int {
	switch s.Kind {
	case ops.KindInteract, ops.KindInteractGrad:
		vectors := s.In[0].Columns / s.Dim
		return vectors * vectors
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

// factorize computes the pairs from the sum of the vectors: Σ_f v·(Σ v − v) counts every
// pair twice, and does not subtract two nearly equal numbers, as the textbook form does.
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

// pairs is the number of pairs of f vectors.
func pairs(f int) int { return f * (f - 1) / 2 }

// interact multiplies each example's vectors, read as a matrix (F, D), with their own
// transpose and keeps the lower triangle: twice the work, and many times faster than
// pair by pair because it is a matrix product.
func (t *tile) interact(s *program.Step, y, x matrix) {
	d := s.Dim
	f := x.columns / d
	gram := t.scratch.extra[:f*f]
	for i := range t.n {
		vectors, out := x.row(i), y.row(i)
		t.scratch.gemm.Gemm(false, true, f, f, d, vectors, d, vectors, d, false, nil, gram, f)
		for v := 1; v < f; v++ {
			copy(out[pairs(v):][:v], gram[v*f:])
		}
	}
}

// interactGrad multiplies the gradients of the pairs, as a symmetric matrix with zeros on
// its diagonal, with the vectors.
func (t *tile) interactGrad(s *program.Step, dx, x, dy matrix) {
	d := s.Dim
	f := x.columns / d
	square := t.scratch.extra[:f*f]
	clear(square)
	for i := range t.n {
		grad := dy.row(i)
		for v, at := 1, 0; v < f; v++ {
			for w := range v {
				square[v*f+w], square[w*f+v] = grad[at], grad[at]
				at++
			}
		}
		t.scratch.gemm.Gemm(false, false, f, d, f, square, f, x.row(i), d, false, nil, dx.row(i), d)
	}
}
