// Sums over rows: see sums.go for their order. A block has 32·8 threads and works on 32 columns of 256 rows.
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

// Adds v over the threads of each column, as a tree. Those of row 0 of the block get the results. All
// threads of the block must call it; behind another call, after a __syncthreads.
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

// Calls use(i, load(i)) for the rows of this thread in the block's chunk, in their order. What some rows need is loaded before the first
// of them is used: so these loads are on their way together, also where use writes to what others load.
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

// Writes the sums of the block's columns over its chunk of rows to the row of work that belongs to the chunk. sum is that of what each_row has
// for this thread.
DEVICE void put_chunk(double *work, int columns, double sum) {
	int j = block_column();
	sum = column_tree(sum);
	if (j < columns && threadIdx.y == 0) {
		at(work, columns, blockIdx.y, j) = sum;
	}
}

// Both: term(load(i)) is what row i of this thread's column adds.
template <class Load, class Term> DEVICE void sum_chunk(double *work, int rows, int columns, Load load, Term term) {
	double sum = 0;
	if (block_column() < columns) {
		each_row(rows, load, [&](int i, decltype(load(0)) loaded) { sum += term(loaded); });
	}
	put_chunk(work, columns, sum);
}
