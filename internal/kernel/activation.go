package kernel

import "fmt"

// Activation is the function that a layer applies to each of its outputs.
type Activation uint8

// The activations of hidden layers.
const (
	ActivationNone Activation = iota
	ActivationRelu
	ActivationSigmoid
	ActivationTanh
)

// String returns the name that job files use.
func (a Activation) String() string {
	switch a {
	case ActivationNone:
		return "none"
	case ActivationRelu:
		return "relu"
	case ActivationSigmoid:
		return "sigmoid"
	case ActivationTanh:
		return "tanh"
	}
	return fmt.Sprintf("Activation(%d)", uint8(a))
}

// addRow is addVector for rows that may be narrower than a vector.
func addRow(dst, a []float32) {
	if len(a) < 8 {
		addPortable(dst, a)
		return
	}
	addVector(dst, a)
}

// activate applies act to x in place.
func activate(act Activation, x []float32) {
	switch act {
	case ActivationNone:
	case ActivationRelu:
		reluVector(x, x)
	case ActivationSigmoid:
		SigmoidSlice(x, x)
	case ActivationTanh:
		TanhSlice(x, x)
	default:
		panic("kernel: unknown " + act.String())
	}
}

// derive sets dst = grad · act'(…), where out is what the activation returned. See
// ReluBackward, SigmoidBackward and TanhBackward for the operations. dst may be grad.
func derive(act Activation, dst, grad, out []float32) {
	switch act {
	case ActivationNone:
		copy(dst, grad)
	case ActivationRelu:
		reluBackwardVector(dst, grad, out)
	case ActivationSigmoid:
		SigmoidBackward(dst, grad, out)
	case ActivationTanh:
		TanhBackward(dst, grad, out)
	default:
		panic("kernel: unknown " + act.String())
	}
}
