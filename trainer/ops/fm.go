package ops

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// FactorizationMachine returns the second-order part of a factorization
// machine, (N, 1): ½·Σ_d((Σ_f v)² − Σ_f v²) over the vectors v of x (N, F*D),
// which is the sum of the dot products of all pairs of fields. dim is D.
//
// Its derivative is dx = dy·(Σ_f v − v).
func FactorizationMachine(dim int, x *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&fm{base: newBase(1, "factorization-machine"), dim: dim}, x)
}

type fm struct {
	base
	dim int
}

func (op *fm) Type() hm.Type { return matrices(1) }

func (op *fm) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	s, err := matrixShapes(ds)
	if err != nil {
		return nil, err
	}
	if s[0][1]%op.dim != 0 {
		return nil, fmt.Errorf("x is %v for vectors of %d", s[0], op.dim)
	}
	return tensor.Shape{s[0][0], 1}, nil
}

func (op *fm) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(n, 1)
	parallel(n, rowGrain(c), func(lo, hi int) {
		sum := make([]float32, op.dim)
		for i := lo; i < hi; i++ {
			row := x[i*c : (i+1)*c]
			sumVectors(sum, row)
			// The pairs are computed from the sum: Σ_f v·(Σ v − v) counts every pair twice. Unlike
			// the textbook form, it does not subtract two nearly equal numbers.
			var total float32
			for f := 0; f < c; f += op.dim {
				v := row[f : f+op.dim]
				for d, s := range sum {
					total += float32(v[d] * (s - v[d]))
				}
			}
			ydata[i] = 0.5 * total
		}
	})
	return y, nil
}

// sumVectors writes Σ_f v into sum, f ascending.
func sumVectors(sum, row []float32) {
	clear(sum)
	for f := 0; f < len(row); f += len(sum) {
		v := row[f : f+len(sum)]
		for d, x := range v {
			sum[d] += x
		}
	}
}

func (op *fm) DiffWRT(int) []bool { return []bool{true} }

func (op *fm) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := apply(&fmGrad{base: newBase(2, "factorization-machine-grad"), dim: op.dim}, in[0], dy)
	return gorgonia.Nodes{dx}, err
}

// fmGrad computes dy·(Σ_f v − v), (N, F*D).
type fmGrad struct {
	base
	dim int
}

func (op *fmGrad) Type() hm.Type { return matrices(2) }

func (op *fmGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return shapeOf(ds[0]).Clone(), nil
}

func (op *fmGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	dy, _, _ := matrix(in[1])
	dx, ddata := op.out(n, c)
	parallel(n, rowGrain(c), func(lo, hi int) {
		sum := make([]float32, op.dim)
		for i := lo; i < hi; i++ {
			row, out, g := x[i*c:(i+1)*c], ddata[i*c:(i+1)*c], dy[i]
			sumVectors(sum, row)
			for f := 0; f < c; f += op.dim {
				v, o := row[f:f+op.dim], out[f:f+op.dim]
				for d, s := range sum {
					o[d] = g * (s - v[d])
				}
			}
		}
	})
	return dx, nil
}
