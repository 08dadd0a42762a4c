package kernel

import "math"

// The portable vector kernels. Those in assembler must give the same bits.

func addPortable(dst, a []float32) {
	for i, v := range a {
		dst[i] += v
	}
}

func mulPortable(dst, a, b []float32) {
	for i, v := range a {
		dst[i] = v * b[i]
	}
}

func mulThenAddPortable(dst, a, b, c []float32) {
	for i, v := range a {
		dst[i] = float32(v*b[i]) + c[i]
	}
}

func scalePortable(dst, src []float32, alpha float32) {
	for i, v := range src {
		dst[i] = alpha * v
	}
}

func axpyPortable(y, x []float32, alpha float32) {
	// FMA written out: it is too large for the compiler to inline.
	y = y[:len(x)]
	factor := float64(alpha)
	for i, v := range x {
		s := factor*float64(v) + float64(y[i])
		if bits := math.Float64bits(s); bits&lowBits == midpoint || bits<<1 < smallest {
			y[i] = fmaMidpoint(alpha, v, y[i])
			continue
		}
		y[i] = float32(s)
	}
}

func reluPortable(dst, src []float32) {
	for i, v := range src {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

func reluBackwardPortable(dst, grad, out []float32) {
	for i, y := range out {
		g := grad[i]
		if !(y > 0) {
			g = 0
		}
		dst[i] = g
	}
}

func sigmoidBackwardPortable(dst, grad, out []float32) {
	for i, y := range out {
		dst[i] = grad[i] * float32(y*(1-y))
	}
}

func tanhBackwardPortable(dst, grad, out []float32) {
	for i, y := range out {
		dst[i] = grad[i] * FMA(-y, y, 1)
	}
}

func sigmoidPortable(dst, src []float32) {
	for i, x := range src {
		dst[i] = Sigmoid(x)
	}
}

func tanhPortable(dst, src []float32) {
	for i, x := range src {
		dst[i] = Tanh(x)
	}
}

func softplusPortable(dst, src []float32) {
	for i, x := range src {
		dst[i] = Softplus(x)
	}
}

func sumLanesPortable(l *[lanes]float32, x []float32) {
	for ; len(x) >= lanes; x = x[lanes:] {
		for i := range l {
			l[i] += x[i]
		}
	}
}

func dotLanesPortable(l *[lanes]float32, a, b []float32) {
	for ; len(a) >= lanes; a, b = a[lanes:], b[lanes:] {
		for i := range l {
			l[i] = FMA(a[i], b[i], l[i])
		}
	}
}
