#include "aibox.h"

// The bits of a float32, as bfloat16, are its upper half after rounding: see kernel.RoundBF16.
KERNEL to_bf16(unsigned short *y, int ldy, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	unsigned bits = __float_as_uint(at(x, ldx, e.i, e.j));
	if ((bits & 0x7fffffff) > 0x7f800000) { // NaN becomes a quiet one
		bits |= 0x00400000;
	} else if ((bits & 0x7f800000) == 0) { // zero or a denormal number
		bits &= 0x80000000;
	} else {
		bits += 0x7fff + (bits >> 16 & 1);
	}
	at(y, ldy, e.i, e.j) = bits >> 16;
}

// All threads that write the flag write the same.
KERNEL check_finite(int *flag, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	if ((__float_as_uint(at(x, ldx, e.i, e.j)) & 0x7f800000) == 0x7f800000) {
		*flag = 1;
	}
}
