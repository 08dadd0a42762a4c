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

// What derive and those like it have in common: load(i) gives y, and what is multiplied by the derivative there, for row i of this thread's
// column; put(i, g) takes the product.
template <class Load, class Put> DEVICE void derive_chunk(double *work, int rows, int columns, int a, Load load, Put put) {
	sum_chunk(work, rows, columns, load, [=](int i, Pair v) {
		float g = derived(a, v.a, v.b);
		put(i, g);
		return (double)g;
	});
}

KERNEL derive(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ y, int ldy,
	int rows, int columns, int a) {
	int j = block_column();
	derive_chunk(work, rows, columns, a, [=](int i) { return Pair{at(y, ldy, i, j), at(dx, lddx, i, j)}; },
		[=](int i, float g) { at(dx, lddx, i, j) = g; });
}

// derive in bfloat16.
KERNEL derive_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ y,
	int ldy, int rows, int columns, int a) {
	int j = block_column();
	derive_chunk(work, rows, columns, a, [=](int i) { return Pair{at(y, ldy, i, j), bf16_value(at(dx, lddx, i, j))}; },
		[=](int i, float g) { at(dx, lddx, i, j) = bf16_bits(g); });
}

// derive_bf16 where y is in bfloat16, too.
KERNEL derive_from_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx,
	const unsigned short *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	derive_chunk(work, rows, columns, a, [=](int i) { return Pair{bf16_value(at(y, ldy, i, j)), bf16_value(at(dx, lddx, i, j))}; },
		[=](int i, float g) { at(dx, lddx, i, j) = bf16_bits(g); });
}

// derive of a product of a column and a row.
KERNEL derive_outer(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ g, int ldg,
	const float *__restrict__ w, int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	float weight = j < columns ? at(w, ldw, j, 0) : 0;
	derive_chunk(work, rows, columns, a, [=](int i) { return Pair{at(y, ldy, i, j), at(g, ldg, i, 0) * weight}; },
		[=](int i, float d) { at(dx, lddx, i, j) = d; });
}

// derive_outer of a result that is needed in bfloat16 alone.
KERNEL derive_outer_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ g,
	int ldg, const float *__restrict__ w, int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	int j = block_column();
	float weight = j < columns ? at(w, ldw, j, 0) : 0;
	derive_chunk(work, rows, columns, a, [=](int i) { return Pair{at(y, ldy, i, j), at(g, ldg, i, 0) * weight}; },
		[=](int i, float d) { at(dx, lddx, i, j) = bf16_bits(d); });
}
