// The activation functions of activation.go, and their derivatives.
#pragma once

#include "functions.h"

// The values of kernels.Activation.
enum { IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID };

// a(x)
DEVICE float activated(int a, float x) {
	switch (a) {
	case RELU:
		return x < 0 ? 0 : x;
	case LEAKY_RELU:
		return x < 0 ? x * 0.01f : x;
	case TANH:
		return hyperbolic_tangent(x);
	case SIGMOID:
		return sigmoid(x);
	}
	return x;
}

// dy·a'(x), where y = a(x)
DEVICE float derived(int a, float y, float dy) {
	switch (a) {
	case RELU:
		return y > 0 ? dy : 0;
	case LEAKY_RELU:
		return y > 0 ? dy : dy * 0.01f;
	case TANH:
		return dy * fmaf(-y, y, 1);
	case SIGMOID:
		return dy * (y * (1 - y));
	}
	return dy;
}
