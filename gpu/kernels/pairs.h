// Sums over rows, in the order of sums.go, in which a thread works on two neighboring columns: so it reads and writes two numbers at a time,
// where they lie at a multiple of their size. A block has 16·8 threads and works on 32 columns of 256 rows.
#pragma once

#include "bf16.h"
#include "sums.h"

// The first column of this thread, which need not exist.
DEVICE int pair_column() { return blockIdx.x * CHUNK_COLUMNS + 2 * threadIdx.x; }

// Whether all pairs of a matrix with so many columns can be read and written at once.
template <class T> DEVICE bool is_wide(const T *m, int stride, int columns) {
	return ((size_t)m | (size_t)stride * sizeof(T)) % (2 * sizeof(T)) == 0 && columns % 2 == 0;
}

// Two numbers of row i from column j on, as they lie in memory, or one if there are not both. WIDE is what is_wide has said.
template <bool WIDE> DEVICE float2 get_pair(const float *m, int stride, int i, int j, bool both) {
	const float *p = &at(m, stride, i, j);
	return WIDE ? *(const float2 *)p : float2{p[0], both ? p[1] : 0};
}

template <bool WIDE> DEVICE unsigned get_pair(const unsigned short *m, int stride, int i, int j, bool both) {
	const unsigned short *p = &at(m, stride, i, j);
	return WIDE ? *(const unsigned *)p : p[0] | (both ? (unsigned)p[1] << 16 : 0);
}

DEVICE Pair values(float2 v) { return {v.x, v.y}; }
DEVICE Pair values(unsigned v) { return {bf16_value(v), __uint_as_float(v & 0xffff0000)}; }

DEVICE void put_both(float *p, Pair v) { *(float2 *)p = float2{v.a, v.b}; }
DEVICE void put_both(unsigned short *p, Pair v) { *(unsigned *)p = bf16_bits(v.a) | (unsigned)bf16_bits(v.b) << 16; }

template <bool WIDE, class T> DEVICE void put_pair(T *m, int stride, int i, int j, bool both, Pair v) {
	T *p = &at(m, stride, i, j);
	if (WIDE) {
		put_both(p, v);
		return;
	}
	put(p, v.a);
	if (both) {
		put(p + 1, v.b);
	}
}

// What is loaded of a row.
template <class A, class B> struct Loaded {
	A first;
	B second;
};
template <class A, class B> DEVICE Loaded<A, B> loaded(A first, B second) { return {first, second}; }

// Writes the sums of the block's columns, of which this thread has its part of two, to the row of work that belongs to the chunk. It is
// column_tree of sums.h, on two columns.
DEVICE void put_pair_chunk(double *work, int columns, double a, double b) {
	__shared__ double sums[CHUNK_LANES][CHUNK_COLUMNS];
	unsigned lane = threadIdx.y, x = 2 * threadIdx.x;
	sums[lane][x] = a;
	sums[lane][x + 1] = b;
	for (unsigned w = CHUNK_LANES / 2; w > 0; w /= 2) {
		__syncthreads();
		if (lane < w) {
			sums[lane][x] += sums[lane + w][x];
			sums[lane][x + 1] += sums[lane + w][x + 1];
		}
	}
	int j = pair_column();
	if (lane == 0 && j < columns) {
		at(work, columns, blockIdx.y, j) = sums[0][x];
		if (j + 1 < columns) {
			at(work, columns, blockIdx.y, j + 1) = sums[0][x + 1];
		}
	}
}
