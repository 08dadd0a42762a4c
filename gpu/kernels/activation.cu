#include "activation.h"
#include "bf16.h"
#include "sums.h"

KERNEL activate(float *y, int ldy, const float *x, int ldx, int rows, int columns, int a) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(y, ldy, e.i, e.j) = activated(a, at(x, ldx, e.i, e.j));
}

KERNEL activate_grad(float *dx, int lddx, const float *y, int ldy, const float *dy, int lddy, int rows, int columns,
	int a) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	at(dx, lddx, e.i, e.j) = derived(a, at(y, ldy, e.i, e.j), at(dy, lddy, e.i, e.j));
}

// biased is the stride of the bias, 0 if there is none: see Set.perhaps.
KERNEL epilogue(float *y, int ldy, const float *bias, int biased, int rows, int columns, int a) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	float v = at(y, ldy, e.i, e.j);
	if (biased) {
		v += bias[e.j];
	}
	at(y, ldy, e.i, e.j) = activated(a, v);
}

// epilogue of a result that is needed in bfloat16 alone.
KERNEL epilogue_bf16(unsigned short *y, int ldy, const float *x, int ldx, const float *bias, int biased, int rows,
	int columns, int a) {
	Element e(rows, columns);
	if (e.outside) {
		return;
	}
	float v = at(x, ldx, e.i, e.j);
	if (biased) {
		v += bias[e.j];
	}
	at(y, ldy, e.i, e.j) = bf16_bits(activated(a, v));
}

KERNEL derive(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ y, int ldy,
	int rows, int columns, int a) {
	int j = block_column();
	sum_chunk(work, rows, columns, [=](int i) {
		float g = derived(a, at(y, ldy, i, j), at(dx, lddx, i, j));
		at(dx, lddx, i, j) = g;
		return (double)g;
	});
}

// derive in bfloat16.
KERNEL derive_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ y,
	int ldy, int rows, int columns, int a) {
	int j = block_column();
	sum_chunk(work, rows, columns, [=](int i) {
		float g = derived(a, at(y, ldy, i, j), bf16_value(at(dx, lddx, i, j)));
		at(dx, lddx, i, j) = bf16_bits(g);
		return (double)g;
	});
}

// derive_bf16 where y is in bfloat16, too.
KERNEL derive_from_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx,
	const unsigned short *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	sum_chunk(work, rows, columns, [=](int i) {
		float g = derived(a, bf16_value(at(y, ldy, i, j)), bf16_value(at(dx, lddx, i, j)));
		at(dx, lddx, i, j) = bf16_bits(g);
		return (double)g;
	});
}

// derive of a product of a column and a row.
KERNEL derive_outer(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ g, int ldg,
	const float *__restrict__ w, int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	float weight = j < columns ? at(w, ldw, j, 0) : 0;
	sum_chunk(work, rows, columns, [=](int i) {
		float d = derived(a, at(y, ldy, i, j), at(g, ldg, i, 0) * weight);
		at(dx, lddx, i, j) = d;
		return (double)d;
	});
}

// derive_outer of a result that is needed in bfloat16 alone.
KERNEL derive_outer_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ g,
	int ldg, const float *__restrict__ w, int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	float weight = j < columns ? at(w, ldw, j, 0) : 0;
	sum_chunk(work, rows, columns, [=](int i) {
		float d = derived(a, at(y, ldy, i, j), at(g, ldg, i, 0) * weight);
		at(dx, lddx, i, j) = bf16_bits(d);
		return (double)d;
	});
}
