#include "aibox.h"

KERNEL copy_rows(float *y, int ldy, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(x, ldx, e.i, e.j);
}

// Column lo + k of each group of period columns of x becomes column k of a group of width columns
// of y.
KERNEL columns(float *y, int ldy, const float *x, int ldx, int rows, int columns, int period, int lo, int width) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(x, ldx, e.i, e.j / width * period + lo + e.j % width);
}

KERNEL spread(float *dx, int lddx, const float *dy, int lddy, int rows, int columns, int period, int lo, int width) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	int k = (int)(e.j % period) - lo;
	bool taken = k >= 0 && k < width;
	at(dx, lddx, e.i, e.j) = taken ? at(dy, lddy, e.i, e.j / period * width + k) : 0;
}

KERNEL repeat(float *y, int ldy, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(x, ldx, e.i, 0);
}

KERNEL clear_columns(float *y, int ldy, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = 0;
}

KERNEL bias(float *y, int ldy, const float *b, int, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = b[0];
}
