// exp, tanh, sigmoid and softplus as in internal/kernel (exp.go, log.go, sigmoid.go): computed in
// double precision with each operation rounded, so that both give the same bits.
#pragma once

#include "aibox.h"

// Sets scale = 2^n and q = e^r - 1, where x = n·ln 2 + r and |r| <= ln(2)/2, for |x| <= 128.
DEVICE void reduce_exp(double x, double &scale, double &q) {
	const double round_to_int = 6755399441055744.0; // 3·2^51
	double n = (x * 1.44269504088896340735992468100189214 + round_to_int) - round_to_int;
	double r = x - n * 0.693147180559945309417232121458176568;
	double p = r * (1.0 / 39916800) + 1.0 / 3628800;
	p = r * p + 1.0 / 362880;
	p = r * p + 1.0 / 40320;
	p = r * p + 1.0 / 5040;
	p = r * p + 1.0 / 720;
	p = r * p + 1.0 / 120;
	p = r * p + 1.0 / 24;
	p = r * p + 1.0 / 6;
	p = r * p + 1.0 / 2;
	q = r + r * r * p;
	scale = __longlong_as_double(((long long)n + 1023) << 52);
}

// e^x for |x| <= 128.
DEVICE double exp_double(double x) {
	double scale, q;
	reduce_exp(x, scale, q);
	return scale + scale * q;
}

DEVICE double between(double lo, double x, double hi) { return x < lo ? lo : x > hi ? hi : x; }

DEVICE float sigmoid(float x) {
	if (x != x) {
		return x;
	}
	return (float)(1 / (1 + exp_double(between(-128, -(double)x, 128))));
}

DEVICE float hyperbolic_tangent(float x) {
	if (x != x) {
		return x;
	}
	double scale, q;
	reduce_exp(between(0, 2 * fabs((double)x), 128), scale, q);
	double t = (scale - 1) + scale * q; // e^2|x| - 1
	return (float)copysign(t / (t + 2), (double)x);
}

// log(1+d) for 1+d between √½ and √2.
DEVICE double log1p_reduced(double d) {
	double s = d / (2 + d);
	double z = s * s;
	double p = z * (1.0 / 19) + 1.0 / 17;
	p = z * p + 1.0 / 15;
	p = z * p + 1.0 / 13;
	p = z * p + 1.0 / 11;
	p = z * p + 1.0 / 9;
	p = z * p + 1.0 / 7;
	p = z * p + 1.0 / 5;
	p = z * p + 1.0 / 3;
	return 2 * (s + s * (z * p));
}

// log(1 + e^x).
DEVICE float softplus(float x) {
	if (x != x) {
		return x;
	}
	double a = fabs((double)x);
	double u = exp_double(-(a < 128 ? a : 128));
	double l = u <= 0.414213562373095048801688724209698079
		? log1p_reduced(u)
		: 0.693147180559945309417232121458176568 + log1p_reduced((u - 1) * 0.5);
	return (float)((x > 0 ? (double)x : 0) + l);
}
