// Sums over rows in the order of sums.go, with two adjacent columns per thread. A thread reads and
// writes both columns in one access where their alignment allows it. A block has 16·8 threads and
// works on 32 columns of 256 rows.
#pragma once

#include "bf16.h"
#include "sums.h"

// The first column of this thread, which need not exist.
DEVICE int pair_column() { return blockIdx.x * CHUNK_COLUMNS + 2 * threadIdx.x; }

// Whether each pair of columns of a matrix can be read and written in one access.
template <class T> DEVICE bool is_wide(const T *m, int stride, int columns) {
	return ((size_t)m | (size_t)stride * sizeof(T)) % (2 * sizeof(T)) == 0 && columns % 2 == 0;
}

// Columns j and j+1 of row i as they are in memory; only column j unless both. WIDE is the result
// of is_wide.
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

// The two operands loaded for a row.
template <class A, class B> struct Loaded {
	A first;
	B second;
};
template <class A, class B> DEVICE Loaded<A, B> loaded(A first, B second) { return {first, second}; }

// Adds up this thread's sums a and b of two columns over the block, in the order of column_tree of
// sums.h, and writes the result to the chunk's row of work.
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
