// Rows of the sparse table: see table.go.
#pragma once

#include "numbers.h"

// The numbers of Format.
enum { FLOAT32, FLOAT16, BFLOAT16 };

// How many values a word has, and how many words so many values take.
DEVICE int per_word(int format) { return format == FLOAT32 ? 1 : 2; }
DEVICE int value_words(int values, int format) { return format == FLOAT32 ? values : (values + 1) / 2; }

// The row of the table that is row i of the mini-batch.
template <class T> DEVICE T *table_row(T *rows, const int *index, unsigned i, int words) { return rows + (size_t)index[i] * words; }

// What the values of a row are multiplied by: see decay.Factors.Numbers. The first value has a pair of its own.
DEVICE float decayed(const float *factors, int k, float v) {
	float less = factors[k ? 2 : 0], factor = factors[k ? 3 : 1];
	return less != 0 ? v + v * less : factor != 1 ? v * factor : v;
}

// n / d, of the inverse of d: see inverse.
DEVICE unsigned divided(unsigned n, long long inverse) { return __umul64hi(2 * (unsigned long long)n, inverse); }

// sum + factor·x. With a factor of 1 that is the sum of the two.
template <int N> DEVICE void add_product(Numbers<N> &sum, float factor, const Numbers<N> &x) {
	for (int h = 0; h < N; h++) {
		sum.v[h] = fmaf(factor, x.v[h], sum.v[h]);
	}
}

// The numbers that no sum changes with, not even one of -0.
template <int N> DEVICE Numbers<N> nothing() {
	Numbers<N> x;
	for (int h = 0; h < N; h++) {
		x.v[h] = -0.0f;
	}
	return x;
}

// Adds up what is asked for at [p, end), in order. Many are asked for before the first of them is added: a chain would
// otherwise wait for memory at each of its links.
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
