package ops

import (
	"fmt"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aibox/internal/splitmix"
)

// Dropout returns x (N, C) with each element set to zero with probability p
// and multiplied by 1/(1-p) otherwise. step is an int64 input of one element,
// the number of the optimizer step.
//
// A hash of (seed, layer, step, i) decides whether element i is kept. So the same step drops the
// same elements whatever ran before. The derivative, Dropout of dy with the same arguments,
// recomputes the mask instead of keeping it.
func Dropout(p float64, seed uint64, layer int, x, step *gorgonia.Node) (*gorgonia.Node, error) {
	if p < 0 || p >= 1 {
		return nil, fmt.Errorf("ops: dropout probability %g: want 0 <= p < 1", p)
	}
	if p == 0 {
		return x, nil
	}
	return apply(&dropout{base: newBase(2, "dropout(%g)", p), p: p, seed: seed, layer: layer}, x, step)
}

type dropout struct {
	base
	p     float64
	seed  uint64
	layer int
}

func (op *dropout) Type() hm.Type { return hm.NewFnType(floats(2), int64s(), floats(2)) }

func (op *dropout) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return sameMatrices(ds[:1])
}

func (op *dropout) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(n, c)
	stream := splitmix.Next(splitmix.Next(splitmix.Next(op.seed)+uint64(op.layer)) + uint64(dense(in[1]).Int64s()[0]))
	// A hash drops its element when its upper 32 bits are below the threshold.
	threshold := uint64(op.p * (1 << 32))
	scale := float32(1 / (1 - op.p))
	parallel(len(x), elementGrain/4, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if splitmix.Next(stream+uint64(i))>>32 < threshold {
				ydata[i] = 0
			} else {
				ydata[i] = x[i] * scale
			}
		}
	})
	return y, nil
}

func (op *dropout) DiffWRT(int) []bool { return []bool{true, false} }

func (op *dropout) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := Dropout(op.p, op.seed, op.layer, dy, in[1])
	return gorgonia.Nodes{dx, nil}, err
}
