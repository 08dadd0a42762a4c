// Conversions to and from bfloat16.
#pragma once

#include "aibox.h"

// The bits of x in bfloat16: the upper half of its float32, after rounding. See kernel.RoundBF16.
DEVICE unsigned short bf16_bits(float x) {
	unsigned bits = __float_as_uint(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
	if (fabsf(x) < 1.17549435e-38f) { // zeros and denormals become ±0
		rounded = bits & 0x80000000;
	}
	if (x != x) { // NaN becomes a quiet one
		rounded = bits | 0x00400000;
	}
	return rounded >> 16;
}

// Two numbers in bfloat16, packed into the bits of one float.
DEVICE float bf16_pair(float lo, float hi) { return __uint_as_float(bf16_bits(lo) | (unsigned)bf16_bits(hi) << 16); }

DEVICE float bf16_value(unsigned short x) { return __uint_as_float((unsigned)x << 16); }

// Stores a result as float32, or rounded to bfloat16.
DEVICE void put(float *y, float x) { *y = x; }
DEVICE void put(unsigned short *y, float x) { *y = bf16_bits(x); }
