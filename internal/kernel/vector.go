package kernel

import "fmt"

func sameLength(function string, want, got int) {
	if want != got {
		panic(fmt.Sprintf("kernel.%s: slices of %d and %d elements", function, want, got))
	}
}

// Add sets dst[i] = dst[i] + a[i].
func Add(dst, a []float32) {
	sameLength("Add", len(dst), len(a))
	addVector(dst, a)
}

// Mul sets dst[i] = a[i] * b[i]. dst may be a or b.
func Mul(dst, a, b []float32) {
	sameLength("Mul", len(dst), len(a))
	sameLength("Mul", len(dst), len(b))
	mulVector(dst, a, b)
}

// MulThenAdd sets dst[i] = a[i]*b[i] + c[i], the product and the sum rounded. dst may be one
// of the others.
func MulThenAdd(dst, a, b, c []float32) {
	sameLength("MulThenAdd", len(dst), len(a))
	sameLength("MulThenAdd", len(dst), len(b))
	sameLength("MulThenAdd", len(dst), len(c))
	mulThenAddVector(dst, a, b, c)
}

// Scale sets x[i] = alpha * x[i].
func Scale(alpha float32, x []float32) { scaleVector(x, x, alpha) }

// ScaleTo sets dst[i] = alpha * src[i].
func ScaleTo(dst []float32, alpha float32, src []float32) {
	sameLength("ScaleTo", len(dst), len(src))
	scaleVector(dst, src, alpha)
}

// Axpy sets y[i] = alpha*x[i] + y[i], fused.
func Axpy(alpha float32, x, y []float32) {
	sameLength("Axpy", len(y), len(x))
	axpyVector(y, x, alpha)
}

// Relu sets dst[i] = 0 where src[i] < 0 and src[i] elsewhere: NaN stays NaN.
// dst may be src.
func Relu(dst, src []float32) {
	sameLength("Relu", len(dst), len(src))
	reluVector(dst, src)
}

// ReluBackward sets dst[i] = grad[i] where out[i] > 0 and 0 elsewhere. out is
// what Relu returned. dst may be grad.
func ReluBackward(dst, grad, out []float32) {
	sameLength("ReluBackward", len(dst), len(grad))
	sameLength("ReluBackward", len(dst), len(out))
	reluBackwardVector(dst, grad, out)
}

// SigmoidBackward sets dst[i] = grad[i] · (out[i] · (1 - out[i])), each
// operation rounded. out is what Sigmoid returned. dst may be grad.
func SigmoidBackward(dst, grad, out []float32) {
	sameLength("SigmoidBackward", len(dst), len(grad))
	sameLength("SigmoidBackward", len(dst), len(out))
	sigmoidBackwardVector(dst, grad, out)
}

// TanhBackward sets dst[i] = grad[i] · (1 - out[i]²), the bracket fused. out is
// what Tanh returned. dst may be grad.
func TanhBackward(dst, grad, out []float32) {
	sameLength("TanhBackward", len(dst), len(grad))
	sameLength("TanhBackward", len(dst), len(out))
	tanhBackwardVector(dst, grad, out)
}
