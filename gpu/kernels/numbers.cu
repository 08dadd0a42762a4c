#include "bf16.h"
#include "numbers.h"

// x has only the first given of y's columns; the others become 0. A thread works on at_once
// columns: 1, or 4 if given is a multiple of 4.
KERNEL to_bf16(unsigned short *y, int ldy, const float *x, int ldx, int rows, int columns, int given, int at_once) {
	Element e(rows, columns / at_once);
	if (e.outside) {
		return;
	}
	if (at_once == 4) {
		unsigned j = 4 * e.j;
		Numbers<4> some = {};
		if (j < (unsigned)given) {
			some = numbers<4>(&at(x, ldx, e.i, j));
		}
		put((float *)&at(y, ldy, e.i, j), Numbers<2>{{bf16_pair(some.v[0], some.v[1]), bf16_pair(some.v[2], some.v[3])}});
		return;
	}
	at(y, ldy, e.i, e.j) = e.j < (unsigned)given ? bf16_bits(at(x, ldx, e.i, e.j)) : 0;
}

// Concurrent writes of the flag are harmless: all write 1.
KERNEL check_finite(int *flag, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	if ((__float_as_uint(at(x, ldx, e.i, e.j)) & 0x7f800000) == 0x7f800000) {
		*flag = 1;
	}
}
