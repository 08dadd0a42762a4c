package kernel

import (
	"fmt"
	"sync"
)

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

// elementGrain is how many elements a range must have to be worth a goroutine if an element
// takes about a nanosecond.
const elementGrain = 16 << 10

// BiasActivation sets x[i,j] = act(x[i,j] + bias[j]) for the (m, n) matrix x,
// whose rows are ldx elements apart. A nil bias adds nothing.
func BiasActivation(act Activation, m, n int, bias, x []float32, ldx int) {
	checkMatrix("BiasActivation", "x", m, n, len(x), ldx)
	if bias != nil {
		sameLength("BiasActivation", n, len(bias))
	}
	if m == 0 || n == 0 || bias == nil && act == ActivationNone {
		return
	}
	t := biasTasks.Get().(*biasTask)
	*t = biasTask{act, m, n, bias, x, ldx}
	parallel(m, max(1, elementGrain/n), t)
	*t = biasTask{}
	biasTasks.Put(t)
}

type biasTask struct {
	act     Activation
	m, n    int
	bias, x []float32
	ldx     int
}

var biasTasks = sync.Pool{New: func() any { return new(biasTask) }}

func (t *biasTask) run(lo, hi int) {
	for i := lo; i < hi; i++ {
		row := t.x[i*t.ldx:][:t.n]
		if t.bias != nil {
			addRow(row, t.bias)
		}
		if t.ldx != t.n || t.n >= narrow {
			activate(t.act, row)
		}
	}
	if t.ldx == t.n && t.n < narrow {
		activate(t.act, t.x[lo*t.n:hi*t.n])
	}
}

// narrow is the number of columns below which the call of a vector kernel for each row
// takes longer than its work.
const narrow = 32

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

// ActivationBackward sets dst = grad · act'(…), where out is what the
// activation returned. See ReluBackward, SigmoidBackward and TanhBackward for
// the operations. dst may be grad.
func ActivationBackward(act Activation, dst, grad, out []float32) {
	sameLength("ActivationBackward", len(dst), len(grad))
	sameLength("ActivationBackward", len(dst), len(out))
	t := backwardTasks.Get().(*backwardTask)
	*t = backwardTask{act, dst, grad, out}
	parallel(len(dst), elementGrain, t)
	*t = backwardTask{}
	backwardTasks.Put(t)
}

type backwardTask struct {
	act            Activation
	dst, grad, out []float32
}

var backwardTasks = sync.Pool{New: func() any { return new(backwardTask) }}

func (t *backwardTask) run(lo, hi int) {
	derive(t.act, t.dst[lo:hi], t.grad[lo:hi], t.out[lo:hi])
}

// derive sets dst = grad · act'(…), where out is what the activation returned.
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
