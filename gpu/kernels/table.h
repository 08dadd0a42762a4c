// Rows of the sparse table: see table.go.
#pragma once

#include "numbers.h"

// The values of kernels.Format.
enum { FLOAT32, FLOAT16, BFLOAT16 };

// How many values a word holds, and how many words the given number of values takes.
DEVICE int per_word(int format) { return format == FLOAT32 ? 1 : 2; }
DEVICE int value_words(int values, int format) { return format == FLOAT32 ? values : (values + 1) / 2; }

// The table row of row i of the mini-batch.
template <class T> DEVICE T *table_row(T *rows, const int *index, unsigned i, int words) { return rows + (size_t)index[i] * words; }

// Value k of a row, v, after decay. factors is two pairs, for the first value and for the others:
// see decay.Factors.Numbers.
DEVICE float decayed(const float *factors, int k, float v) {
	float less = factors[k ? 2 : 0], factor = factors[k ? 3 : 1];
	return less != 0 ? v + v * less : factor != 1 ? v * factor : v;
}

// n / d, where inverse is the inverse of d: see inverse in Go.
DEVICE unsigned divided(unsigned n, long long inverse) { return __umul64hi(2 * (unsigned long long)n, inverse); }

// Adds factor·x to sum, by fused multiply-adds. With a factor of 1 that is a plain addition.
template <int N> DEVICE void add_product(Numbers<N> &sum, float factor, const Numbers<N> &x) {
	for (int h = 0; h < N; h++) {
		sum.v[h] = fmaf(factor, x.v[h], sum.v[h]);
	}
}

// -0, the neutral element of addition: adding +0 would turn a sum of -0 into +0.
template <int N> DEVICE Numbers<N> nothing() {
	Numbers<N> x;
	for (int h = 0; h < N; h++) {
		x.v[h] = -0.0f;
	}
	return x;
}

// Adds ask(p), …, ask(end-1) to sum, in order. It issues 16 loads before the first addition, so
// that the chain of additions does not wait for memory at each of them.
template <int N, class Ask> DEVICE void add_up(Numbers<N> &sum, int p, int end, Ask ask) {
	enum { ASKED = 16 };
	for (; p < end; p += ASKED) {
		Numbers<N> asked[ASKED];
		for (int q = 0; q < ASKED; q++) {
			asked[q] = p + q < end ? ask(p + q) : nothing<N>();
		}
		for (int q = 0; q < ASKED; q++) {
			add_product(sum, 1, asked[q]);
		}
	}
}
