package ops

import (
	"fmt"

	"aibox/internal/kernel"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Activation is an element-wise function whose derivative can be computed from its
// result, so that layers need not keep its input.
type Activation uint8

const (
	Identity  Activation = iota
	ReLU                 // max(x, 0)
	LeakyReLU            // x if x > 0, else leak*x
	Tanh
	Sigmoid
)

// leak is PyTorch's default slope of LeakyReLU.
const leak = 0.01

var activationNames = [...]string{Identity: "identity", ReLU: "relu", LeakyReLU: "leaky_relu", Tanh: "tanh", Sigmoid: "sigmoid"}

func (a Activation) String() string { return activationNames[a] }

// ActivationNames lists the names that ParseActivation accepts.
func ActivationNames() []string { return append([]string(nil), activationNames[:]...) }

// ParseActivation returns the activation of the given name.
func ParseActivation(name string) (Activation, error) {
	for a, n := range activationNames {
		if n == name {
			return Activation(a), nil
		}
	}
	return 0, fmt.Errorf("ops: no activation %q; there are %q", name, activationNames)
}

// Apply replaces x by a(x).
func (a Activation) Apply(x []float32) {
	switch a {
	case ReLU:
		kernel.Relu(x, x)
	case LeakyReLU:
		for i, v := range x {
			if v < 0 {
				x[i] = v * leak
			}
		}
	case Tanh:
		kernel.TanhSlice(x, x)
	case Sigmoid:
		kernel.SigmoidSlice(x, x)
	}
}

// Gradient writes dx = dy * a'(x) where y = a(x). At the kinks the derivative
// is that of the left side.
func (a Activation) Gradient(dx, y, dy []float32) {
	switch a {
	case Identity:
		copy(dx, dy)
	case ReLU:
		kernel.ReluBackward(dx, dy, y)
	case LeakyReLU:
		for i, v := range y {
			if v > 0 {
				dx[i] = dy[i]
			} else {
				dx[i] = dy[i] * leak
			}
		}
	case Tanh:
		kernel.TanhBackward(dx, dy, y)
	case Sigmoid:
		kernel.SigmoidBackward(dx, dy, y)
	}
}

// Activate returns a(x) for x (N, C).
func Activate(a Activation, x *gorgonia.Node) (*gorgonia.Node, error) {
	if a == Identity {
		return x, nil
	}
	return apply(&activate{base: newBase(1, "activate(%v)", a), act: a}, x)
}

type activate struct {
	base
	act Activation
}

func (op *activate) Type() hm.Type { return matrices(1) }

func (op *activate) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return sameMatrices(ds)
}

func (op *activate) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	x, n, c := matrix(in[0])
	y, ydata := op.out(n, c)
	parallel(len(x), elementGrain, func(lo, hi int) {
		copy(ydata[lo:hi], x[lo:hi])
		op.act.Apply(ydata[lo:hi])
	})
	return y, nil
}

func (op *activate) DiffWRT(int) []bool { return []bool{true} }

func (op *activate) SymDiff(_ gorgonia.Nodes, y, dy *gorgonia.Node) (gorgonia.Nodes, error) {
	dx, err := activationGrad(op.act, y, dy)
	return gorgonia.Nodes{dx}, err
}

// activationGrad returns dy * a'(x) for y = a(x), all (N, C).
func activationGrad(a Activation, y, dy *gorgonia.Node) (*gorgonia.Node, error) {
	if a == Identity {
		return dy, nil
	}
	return apply(&activateGrad{base: newBase(2, "activation-grad(%v)", a), act: a}, y, dy)
}

type activateGrad struct {
	base
	act Activation
}

func (op *activateGrad) Type() hm.Type { return matrices(2) }

func (op *activateGrad) InferShape(ds ...gorgonia.DimSizer) (tensor.Shape, error) {
	return sameMatrices(ds)
}

func (op *activateGrad) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	y, n, c := matrix(in[0])
	dy, _, _ := matrix(in[1])
	dx, dxdata := op.out(n, c)
	parallel(len(y), elementGrain, func(lo, hi int) {
		op.act.Gradient(dxdata[lo:hi], y[lo:hi], dy[lo:hi])
	})
	return dx, nil
}
