#include "bf16.h"

// Columns that x lacks become 0.
KERNEL to_bf16(unsigned short *y, int ldy, const float *x, int ldx, int rows, int columns, int given) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = e.j < (unsigned)given ? bf16_bits(at(x, ldx, e.i, e.j)) : 0;
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
