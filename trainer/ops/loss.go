package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Loss returns the negative log-likelihood of equation 1 (AIBox §2.2) as a scalar node: the mean
// over N of wᵢ·(softplus(zᵢ) − yᵢ·zᵢ), for logits z (N, 1), labels y (N) and weights w (N). The
// paper's softmax over {click, no click} is the sigmoid of one logit. This form neither overflows
// nor takes the logarithm of zero. The mean divides by N, not by Σw.
//
// The gradient is wᵢ·(sigmoid(zᵢ) − yᵢ)/N.
//
// LossValue reads the result in double precision.
func Loss(logits, labels, weights *gorgonia.Node) (*gorgonia.Node, error) {
	return apply(&loss{base: newBase(3, "loss")}, logits, labels, weights)
}

// LossValue returns the last value of a node that Loss made. Gorgonia carries this number rounded
// to single precision.
func LossValue(node *gorgonia.Node) float64 { return node.Op().(*loss).value }

type loss struct {
	base
	terms []float32
	value float64
}

// Type ends in a type variable because the cost must have a scalar type.
func (op *loss) Type() hm.Type {
	a := hm.TypeVariable('a')
	return hm.NewFnType(gorgonia.TensorType{Dims: 2, Of: a}, gorgonia.TensorType{Dims: 1, Of: a}, gorgonia.TensorType{Dims: 1, Of: a}, a)
}

func (op *loss) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	if err := checkLoss(ds); err != nil {
		return nil, err
	}
	return tensor.ScalarShape(), nil
}

func checkLoss(ds []gorgonia.DimSizer) error {
	z, y, w := shapeOf(ds[0]), shapeOf(ds[1]), shapeOf(ds[2])
	if len(z) != 2 || z[1] != 1 || !sameShape(y, []int{z[0]}) || !sameShape(w, []int{z[0]}) {
		return fmt.Errorf("logits are %v, labels %v, weights %v", z, y, w)
	}
	return nil
}

func (op *loss) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	z, n, _ := matrix(in[0])
	y, w := dense(in[1]).Float32s(), dense(in[2]).Float32s()
	op.terms = resize(op.terms, n)
	kernel.SoftplusSlice(op.terms, z)
	// One sum, in order, in double precision: N additions cost very little compared with the
	// network.
	var total float64
	for i, t := range op.terms {
		total += float64(w[i] * (t - float32(y[i]*z[i])))
	}
	op.value = total / float64(n)
	return gorgonia.NewF32(float32(op.value)), nil
}

func (op *loss) DiffWRT(int) []bool { return differentiable(1, 3) }

func (op *loss) SymDiff(in gorgonia.Nodes, _, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dz, err := apply(&lossGrad{base: newBase(4, "loss-grad")}, in[0], in[1], in[2], dy)
	return gorgonia.Nodes{dz, nil, nil}, err
}

// lossGrad computes dy·wᵢ·(sigmoid(zᵢ) − yᵢ)/N, (N, 1).
type lossGrad struct{ base }

func (op *lossGrad) Type() hm.Type {
	return hm.NewFnType(floats(2), floats(1), floats(1), tensor.Float32, floats(2))
}

func (op *lossGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	if err := checkLoss(ds); err != nil {
		return nil, err
	}
	return shapeOf(ds[0]).Clone(), nil
}

func (op *lossGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	z, n, _ := matrix(in[0])
	y, w := dense(in[1]).Float32s(), dense(in[2]).Float32s()
	scale := scalar(in[3]) / float32(n)
	dz, ddata := op.out(n, 1)
	kernel.SigmoidSlice(ddata, z)
	for i, p := range ddata {
		ddata[i] = w[i] * (p - y[i]) * scale
	}
	return dz, nil
}
