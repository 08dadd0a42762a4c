// The formulas of internal/kernel (optimizer.go, ftrl.go), for one value.
#pragma once

#include "aibox.h"

// The constants of a kernel.Update, in the layout of AppendUpdate.
struct Update {
	float shrink, l2, rate, epsilon, momentum, beta2, rest1, rest2, scale, beta, lambda1, lambda2;
};

// The values of kernel.Formula.
enum { SGD, MOMENTUM, ADAGRAD, ROWWISE_ADAGRAD, ADAM, FTRL };

// The gradient plus that of the L2 penalty.
DEVICE float penalized(const Update &u, float w, float g) { return g + u.l2 * w; }

// Each function step_… returns the new value of w and updates its state.

DEVICE float step_sgd(const Update &u, float w, float g) { return w - u.rate * penalized(u, w, g); }

DEVICE float step_momentum(const Update &u, float w, float g, float &b) {
	b = u.momentum * b + penalized(u, w, g);
	return w - u.rate * b;
}

// Adagrad, where s already includes the square of this gradient.
DEVICE float step_by_sum(const Update &u, float w, float g, float s) {
	return w - u.rate * penalized(u, w, g) / (sqrtf(s) + u.epsilon);
}

DEVICE float step_adagrad(const Update &u, float w, float g, float &s) {
	float d = penalized(u, w, g);
	s += d * d;
	return step_by_sum(u, w, g, s);
}

DEVICE float step_adam(const Update &u, float w, float g, float &m, float &v) {
	float d = penalized(u, w, g);
	m += u.rest1 * (d - m);
	v = u.beta2 * v + u.rest2 * d * d;
	return w - u.rate * m / (sqrtf(v) / u.scale + u.epsilon);
}

DEVICE float ftrl_denominator(const Update &u, float n) { return (u.beta + sqrtf(n)) / u.rate + u.lambda2; }

DEVICE float step_ftrl(const Update &u, float w, float g, float &z, float &n) {
	if (u.rate < 0x1p-64f) { // minAlpha of package kernel
		return w;
	}
	float d = penalized(u, w, g);
	if (w != 0) { // the z that corresponds to w
		float y = -(w * ftrl_denominator(u, n));
		z = w > 0 ? y - u.lambda1 : w < 0 ? y + u.lambda1 : 0;
	}
	float next = n + d * d;
	float sigma = (sqrtf(next) - sqrtf(n)) / u.rate;
	z += d - sigma * w;
	n = next;
	if (z > u.lambda1) {
		return -(z - u.lambda1) / ftrl_denominator(u, next);
	}
	if (z < -u.lambda1) {
		return -(z + u.lambda1) / ftrl_denominator(u, next);
	}
	return 0;
}
