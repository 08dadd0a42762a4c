package ops

import (
	"fmt"
	"math"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// normEpsilon is added to variances before the square root; it is PyTorch's default.
const normEpsilon = 1e-5

// BatchStats returns the mean and the variance (the mean of squared
// deviations) of every column of x (N, C), as the two rows of a (2, C) matrix.
// Differentiation treats it as a constant, because the derivative of BatchNorm already
// includes the dependence on the statistics.
func BatchStats(x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&batchStats{base: newBase(1, "batch-stats")}, x)
}

// BatchNorm returns gamma·(x − mean)/√(variance + 1e-5) + beta for x (N, C), gamma and beta (C). In
// training, stats (2, C) is BatchStats of the same x. Otherwise it is an input with running
// statistics; then the derivative is not that of the function.
//
// With x̂ the normalized x, the derivative is dbeta = Σ dy and dgamma = Σ dy·x̂
// over the examples, dx = gamma/√(variance + 1e-5)·(dy − dbeta/N − x̂·dgamma/N).
func BatchNorm(x, gamma, beta, stats *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&batchNorm{base: newBase(4, "batch-norm")}, x, gamma, beta, stats)
}

type batchStats struct{ base }

func (op *batchStats) Type() hm.Type { return matrices(1) }

func (op *batchStats) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{2, s[0][1]}, nil
}

// Do sums in double precision, examples in ascending order, and computes the deviations
// from the mean in a second pass, which stays accurate if the mean is much larger than
// the deviations.
func (op *batchStats) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(2, c)
	parallel(c, rowGrain(n), func(lo, hi int) {
		acc := make([]float64, hi-lo)
		for i := range n {
			for j, v := range x[i*c+lo : i*c+hi] {
				acc[j] += float64(v)
			}
		}
		for j := range acc {
			acc[j] /= float64(n)
			ydata[lo+j] = float32(acc[j])
		}
		square := make([]float64, hi-lo)
		for i := range n {
			for j, v := range x[i*c+lo : i*c+hi] {
				d := float64(v) - acc[j]
				square[j] += float64(d * d)
			}
		}
		for j := range square {
			ydata[c+lo+j] = float32(square[j] / float64(n))
		}
	})
	return y, nil
}

func (op *batchStats) DiffWRT(int) []bool { return []bool{false} }

func (op *batchStats) SymDiff(gorgonia.Nodes, *gorgonia.Node, *gorgonia.Node) (gorgonia.Nodes, error) {
	return gorgonia.Nodes{nil}, nil
}

type batchNorm struct{ base }

func (op *batchNorm) Type() hm.Type {
	return hm.NewFnType(floats(2), floats(1), floats(1), floats(2), floats(2))
}

func (op *batchNorm) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	x, gamma, beta, stats := shapeOf(ds[0]), shapeOf(ds[1]), shapeOf(ds[2]), shapeOf(ds[3])
	if len(x) != 2 || !sameShape(gamma, x[1:]) || !sameShape(beta, x[1:]) || !sameShape(stats, []int{2, x[1]}) {
		return nil, fmt.Errorf("x is %v, gamma %v, beta %v, stats %v", x, gamma, beta, stats)
	}
	return x.Clone(), nil
}

// InverseDeviation returns 1/√(variance + 1e-5). Square root and division are exactly rounded
// everywhere.
func InverseDeviation(variance float32) float32 {
	return float32(1 / math.Sqrt(float64(variance)+normEpsilon))
}

func (op *batchNorm) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	gamma, beta := dense(in[1]).Float32s(), dense(in[2]).Float32s()
	stats, _, _ := matrix(in[3])
	y, ydata := op.out(n, c)
	parallel(n, rowGrain(c), func(lo, hi int) {
		scale := make([]float32, c)
		for j := range scale {
			scale[j] = InverseDeviation(stats[c+j])
		}
		for i := lo; i < hi; i++ {
			row, out := x[i*c:(i+1)*c], ydata[i*c:(i+1)*c]
			for j, v := range row {
				out[j] = float32(gamma[j]*float32((v-stats[j])*scale[j])) + beta[j]
			}
		}
	})
	return y, nil
}

func (op *batchNorm) DiffWRT(int) []bool { return []bool{true, true, true, false} }

func (op *batchNorm) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	x, gamma, stats := in[0], in[1], in[3]
	dgamma, err := apply(&batchNormGamma{base: newBase(3, "batch-norm-grad-gamma")}, x, stats, dy)
	if err != nil {
		return nil, err
	}
	dbeta, err := colSum(dy)
	if err != nil {
		return nil, err
	}
	dx, err := apply(&batchNormInput{base: newBase(6, "batch-norm-grad-x")}, x, gamma, stats, dgamma, dbeta, dy)
	return gorgonia.Nodes{dx, dgamma, dbeta, nil}, err
}

// batchNormGamma is Σ dy·x̂ over the examples in ascending order, (C).
type batchNormGamma struct{ base }

func (op *batchNormGamma) Type() hm.Type {
	return hm.NewFnType(floats(2), floats(2), floats(2), floats(1))
}

func (op *batchNormGamma) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.Shape{shapeOf(ds[0])[1]}, nil
}

func (op *batchNormGamma) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	stats, _, _ := matrix(in[1])
	dy, _, _ := matrix(in[2])
	dgamma, ddata := op.out(c)
	parallel(c, rowGrain(n), func(lo, hi int) {
		acc := make([]float32, hi-lo)
		scale := make([]float32, hi-lo)
		for j := range scale {
			scale[j] = InverseDeviation(stats[c+lo+j])
		}
		for i := range n {
			row, grad := x[i*c+lo:i*c+hi], dy[i*c+lo:i*c+hi]
			for j, v := range row {
				acc[j] += float32(grad[j] * float32((v-stats[lo+j])*scale[j]))
			}
		}
		copy(ddata[lo:hi], acc)
	})
	return dgamma, nil
}

// batchNormInput is dx, (N, C).
type batchNormInput struct{ base }

func (op *batchNormInput) Type() hm.Type {
	return hm.NewFnType(floats(2), floats(1), floats(2), floats(1), floats(1), floats(2), floats(2))
}

func (op *batchNormInput) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return shapeOf(ds[0]).Clone(), nil
}

func (op *batchNormInput) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	gamma := dense(in[1]).Float32s()
	stats, _, _ := matrix(in[2])
	dgamma, dbeta := dense(in[3]).Float32s(), dense(in[4]).Float32s()
	dy, _, _ := matrix(in[5])
	dx, ddata := op.out(n, c)
	count := float32(n)
	parallel(n, rowGrain(c), func(lo, hi int) {
		scale, meanGrad, slope := make([]float32, c), make([]float32, c), make([]float32, c)
		for j := range scale {
			scale[j] = InverseDeviation(stats[c+j])
			meanGrad[j] = dbeta[j] / count
			slope[j] = dgamma[j] / count
		}
		for i := lo; i < hi; i++ {
			row, grad, out := x[i*c:(i+1)*c], dy[i*c:(i+1)*c], ddata[i*c:(i+1)*c]
			for j, v := range row {
				normalized := float32((v - stats[j]) * scale[j])
				out[j] = gamma[j] * scale[j] * (grad[j] - meanGrad[j] - float32(normalized*slope[j]))
			}
		}
	})
	return dx, nil
}
