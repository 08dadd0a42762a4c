// Numbers in bfloat16.
#pragma once

#include "aibox.h"

// The bits of a number in bfloat16 are the upper half of its float32, after rounding: see kernel.RoundBF16.
DEVICE unsigned short bf16_bits(float x) {
	unsigned bits = __float_as_uint(x);
	if ((bits & 0x7fffffff) > 0x7f800000) { // NaN becomes a quiet one
		bits |= 0x00400000;
	} else if ((bits & 0x7f800000) == 0) { // zero or a denormal number
		bits &= 0x80000000;
	} else {
		bits += 0x7fff + (bits >> 16 & 1);
	}
	return bits >> 16;
}

DEVICE float bf16_value(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
