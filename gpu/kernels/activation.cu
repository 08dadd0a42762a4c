#include "activation.h"
#include "pairs.h"

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

// epilogue with its result in bfloat16 alone.
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

// The common part of the derive kernels. load(i) returns a pair of y of row i and the argument of
// slopes, which returns a pair of dy. Their derivatives by the activation are written to dx, and
// their sums over the chunk to work.
template <bool WIDE, class T, class Load, class Slopes> DEVICE void derive_chunk(double *work, T *dx, int lddx, int rows, int columns, int a, Load load,
	Slopes slopes) {
	int j = pair_column();
	bool both = j + 1 < columns;
	double sum_a = 0, sum_b = 0;
	if (j < columns) {
		each_row<8>(rows, load, [&](int i, decltype(load(0)) loaded) {
			Pair y = values(loaded.first), dy = slopes(loaded.second);
			Pair g = {derived(a, y.a, dy.a), derived(a, y.b, dy.b)};
			put_pair<WIDE>(dx, lddx, i, j, both, g);
			sum_a += (double)g.a;
			sum_b += (double)g.b;
		});
	}
	put_pair_chunk(work, columns, sum_a, sum_b);
}

template <bool WIDE, class X, class Y> DEVICE void derive_in_place(double *work, X *dx, int lddx, const Y *y, int ldy, int rows, int columns, int a) {
	int j = pair_column();
	bool both = j + 1 < columns;
	auto load = [=](int i) { return loaded(get_pair<WIDE>(y, ldy, i, j, both), get_pair<WIDE>(dx, lddx, i, j, both)); };
	derive_chunk<WIDE>(work, dx, lddx, rows, columns, a, load, [](auto dy) { return values(dy); });
}

template <class X, class Y> DEVICE void derive_all(double *work, X *dx, int lddx, const Y *y, int ldy, int rows, int columns, int a) {
	if (is_wide(dx, lddx, columns) && is_wide(y, ldy, columns)) {
		derive_in_place<true>(work, dx, lddx, y, ldy, rows, columns, a);
	} else {
		derive_in_place<false>(work, dx, lddx, y, ldy, rows, columns, a);
	}
}

KERNEL derive(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	derive_all(work, dx, lddx, y, ldy, rows, columns, a);
}

// derive with dx in bfloat16.
KERNEL derive_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ y, int ldy, int rows, int columns,
	int a) {
	derive_all(work, dx, lddx, y, ldy, rows, columns, a);
}

// derive_bf16 with y in bfloat16, too.
KERNEL derive_from_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const unsigned short *__restrict__ y, int ldy, int rows,
	int columns, int a) {
	derive_all(work, dx, lddx, y, ldy, rows, columns, a);
}

template <bool WIDE, class X> DEVICE void derive_product(double *work, X *dx, int lddx, const float *g, int ldg, const float *w, int ldw, const float *y,
	int ldy, int rows, int columns, int a) {
	int j = pair_column();
	bool both = j + 1 < columns;
	Pair weight = {j < columns ? at(w, ldw, j, 0) : 0, both ? at(w, ldw, j + 1, 0) : 0};
	auto load = [=](int i) { return loaded(get_pair<WIDE>(y, ldy, i, j, both), at(g, ldg, i, 0)); };
	derive_chunk<WIDE>(work, dx, lddx, rows, columns, a, load, [=](float g) { return Pair{g * weight.a, g * weight.b}; });
}

template <class X> DEVICE void derive_products(double *work, X *dx, int lddx, const float *g, int ldg, const float *w, int ldw, const float *y, int ldy,
	int rows, int columns, int a) {
	if (is_wide(dx, lddx, columns) && is_wide(y, ldy, columns)) {
		derive_product<true>(work, dx, lddx, g, ldg, w, ldw, y, ldy, rows, columns, a);
	} else {
		derive_product<false>(work, dx, lddx, g, ldg, w, ldw, y, ldy, rows, columns, a);
	}
}

// derive of the product of a column g and a row w.
KERNEL derive_outer(double *__restrict__ work, float *__restrict__ dx, int lddx, const float *__restrict__ g, int ldg, const float *__restrict__ w,
	int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	derive_products(work, dx, lddx, g, ldg, w, ldw, y, ldy, rows, columns, a);
}

// derive_outer with its result in bfloat16 alone.
KERNEL derive_outer_bf16(double *__restrict__ work, unsigned short *__restrict__ dx, int lddx, const float *__restrict__ g, int ldg,
	const float *__restrict__ w, int ldw, const float *__restrict__ y, int ldy, int rows, int columns, int a) {
	derive_products(work, dx, lddx, g, ldg, w, ldw, y, ldy, rows, columns, a);
}
