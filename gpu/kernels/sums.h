// Sums over rows, in the order of sums.go. A block has 32·8 threads and works on 32 columns of 256
// rows.
#pragma once

#include "aibox.h"

enum { CHUNK_ROWS = 256, CHUNK_COLUMNS = 32, CHUNK_LANES = 8 };

// Two numbers of a row.
struct Pair {
	float a, b;
};

// The column that this thread works on, which need not exist.
DEVICE int block_column() { return blockIdx.x * CHUNK_COLUMNS + threadIdx.x; }

// The row after the last one of this block.
DEVICE int chunk_end(int rows) {
	int end = (blockIdx.y + 1) * CHUNK_ROWS;
	return end < rows ? end : rows;
}

// Adds v over the threads of each column, as a tree. The threads with threadIdx.y 0 get the
// results. All threads of the block must call it. Two calls need a __syncthreads between them.
DEVICE double column_tree(double v) {
	__shared__ double sums[CHUNK_LANES][CHUNK_COLUMNS];
	unsigned lane = threadIdx.y, j = threadIdx.x;
	sums[lane][j] = v;
	for (unsigned w = CHUNK_LANES / 2; w > 0; w /= 2) {
		__syncthreads();
		if (lane < w) {
			sums[lane][j] += sums[lane + w][j];
		}
	}
	return sums[lane][j];
}

// Calls use(i, load(i)) for this thread's rows of the block's chunk, in order. It issues the loads
// of TOGETHER rows before the first use, so that they overlap even if use writes to the loaded
// array.
template <int TOGETHER = 16, class Load, class Use> DEVICE void each_row(int rows, Load load, Use use) {
	int i = blockIdx.y * CHUNK_ROWS + threadIdx.y, end = chunk_end(rows);
	for (; i + (TOGETHER - 1) * CHUNK_LANES < end; i += TOGETHER * CHUNK_LANES) {
		decltype(load(i)) loaded[TOGETHER];
#pragma unroll
		for (int k = 0; k < TOGETHER; k++) {
			loaded[k] = load(i + k * CHUNK_LANES);
		}
#pragma unroll
		for (int k = 0; k < TOGETHER; k++) {
			use(i + k * CHUNK_LANES, loaded[k]);
		}
	}
	for (; i < end; i += CHUNK_LANES) {
		use(i, load(i));
	}
}

// Adds up this thread's sum of a column over the block, and writes the result to the chunk's row of
// work.
DEVICE void put_chunk(double *work, int columns, double sum) {
	int j = block_column();
	sum = column_tree(sum);
	if (j < columns && threadIdx.y == 0) {
		at(work, columns, blockIdx.y, j) = sum;
	}
}

// Sums term(load(i)) over the rows i of the chunk, for each column, and writes the sums to work.
template <class Load, class Term> DEVICE void sum_chunk(double *work, int rows, int columns, Load load, Term term) {
	double sum = 0;
	if (block_column() < columns) {
		each_row(rows, load, [&](int i, decltype(load(0)) loaded) { sum += term(loaded); });
	}
	put_chunk(work, columns, sum);
}
