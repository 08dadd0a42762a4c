#include "mix.h"

KERNEL add(float *y, int ldy, const float *x, int ldx, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) += at(x, ldx, e.i, e.j);
}

KERNEL sum(float *y, int ldy, const float *a, int lda, const float *b, int ldb, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(a, lda, e.i, e.j) + at(b, ldb, e.i, e.j);
}

KERNEL multiply(float *z, int ldz, const float *x, int ldx, const float *y, int ldy, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(z, ldz, e.i, e.j) = at(x, ldx, e.i, e.j) * at(y, ldy, e.i, e.j);
}

// y has one column.
KERNEL multiply_rows(float *z, int ldz, const float *x, int ldx, const float *y, int ldy, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(z, ldz, e.i, e.j) = at(x, ldx, e.i, e.j) * at(y, ldy, e.i, 0);
}

KERNEL cross_matrix(float *y, int ldy, const float *x0, int ldx0, const float *z, int ldz, const float *xl, int ldxl,
	int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(x0, ldx0, e.i, e.j) * at(z, ldz, e.i, e.j) + at(xl, ldxl, e.i, e.j);
}

// z has one column. biased is the stride of the bias, 0 if there is none.
KERNEL cross_column(float *y, int ldy, const float *x0, int ldx0, const float *z, int ldz, const float *xl, int ldxl,
	const float *bias, int biased, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	float v = at(x0, ldx0, e.i, e.j) * at(z, ldz, e.i, 0);
	if (biased) {
		v += bias[e.j];
	}
	at(y, ldy, e.i, e.j) = v + at(xl, ldxl, e.i, e.j);
}

// ldv is 0 if all examples share one row of v.
KERNEL scale_vectors(float *y, int ldy, const float *x, int ldx, const float *v, int ldv, int rows, int columns,
	int dim) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = at(x, ldx, e.i, e.j / dim) * at(v, ldv, e.i, e.j);
}

// splitmix.Next
DEVICE word64 mix(word64 x) { return mix_bits(x + GOLDEN_GAMMA); }

// layer is the hash of seed and layer; first is the number of the first element of x in the whole
// mini-batch. An element is dropped if the upper 32 bits of its hash are below the threshold.
KERNEL dropout(float *y, int ldy, const float *x, int ldx, const long long *step, long long layer, long long first,
	long long threshold, float scale, int rows, int columns) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	word64 number = (word64)first + thread_number();
	word64 hash = mix(mix((word64)layer + (word64)*step) + number);
	bool dropped = hash >> 32 < (word64)threshold;
	at(y, ldy, e.i, e.j) = dropped ? 0 : at(x, ldx, e.i, e.j) * scale;
}
