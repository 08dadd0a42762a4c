// Sums over rows: see sums.go for their order. A block has 32·8 threads and works on 32 columns of 256 rows.
#pragma once

#include "aibox.h"

enum { CHUNK_ROWS = 256, CHUNK_COLUMNS = 32, CHUNK_LANES = 8 };

// The column that this thread works on, which need not exist.
DEVICE int block_column() { return blockIdx.x * CHUNK_COLUMNS + threadIdx.x; }

// The row after the last one of this block.
DEVICE int chunk_end(int rows) {
	int end = (blockIdx.y + 1) * CHUNK_ROWS;
	return end < rows ? end : rows;
}

// Adds v over the threads of each column, as a tree. Those of row 0 of the block get the results. All
// threads of the block must call it, once in a kernel.
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

// Writes the sums of the block's columns over its chunk of rows to the row of work that belongs to
// the chunk. term(i) is what row i of this thread's column adds.
template <class Term> DEVICE void sum_chunk(double *work, int rows, int columns, Term term) {
	int j = block_column();
	double sum = 0;
	if (j < columns) {
		for (int i = blockIdx.y * CHUNK_ROWS + threadIdx.y; i < chunk_end(rows); i += CHUNK_LANES) {
			sum += term(i);
		}
	}
	sum = column_tree(sum);
	if (j < columns && threadIdx.y == 0) {
		at(work, columns, blockIdx.y, j) = sum;
	}
}
