// Numbers in bfloat16.
#pragma once

#include "aibox.h"

// The bits of a number in bfloat16 are the upper half of its float32, after rounding: see kernel.RoundBF16.
DEVICE unsigned short bf16_bits(float x) {
	unsigned bits = __float_as_uint(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
	if (fabsf(x) < 1.17549435e-38f) { // zero or a denormal number
		rounded = bits & 0x80000000;
	}
	if (x != x) { // NaN becomes a quiet one
		rounded = bits | 0x00400000;
	}
	return rounded >> 16;
}

// Two numbers in bfloat16, in the bits of one.
DEVICE float bf16_pair(float lo, float hi) { return __uint_as_float(bf16_bits(lo) | (unsigned)bf16_bits(hi) << 16); }

DEVICE float bf16_value(unsigned short x) { return __uint_as_float((unsigned)x << 16); }

// Results are float32, or rounded to bfloat16.
DEVICE void put(float *y, float x) { *y = x; }
DEVICE void put(unsigned short *y, float x) { *y = bf16_bits(x); }
