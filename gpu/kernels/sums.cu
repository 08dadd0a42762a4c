#include "bf16.h"
#include "sums.h"

KERNEL column_sums(double *work, const float *x, int ldx, int rows, int columns) {
	int j = block_column();
	sum_chunk(work, rows, columns, [&](int i) { return (double)at(x, ldx, i, j); });
}

KERNEL column_sums_bf16(double *work, const unsigned short *x, int ldx, int rows, int columns) {
	int j = block_column();
	sum_chunk(work, rows, columns, [&](int i) { return (double)bf16_value(at(x, ldx, i, j)); });
}

// The sums of the columns of x, each row times a number.
KERNEL column_dots(double *work, const float *x, int ldx, const float *g, int ldg, int rows, int columns) {
	int j = block_column();
	sum_chunk(work, rows, columns, [&](int i) { return (double)at(x, ldx, i, j) * (double)at(g, ldg, i, 0); });
}

// Adds up the sums of chunks. The grid has one row of blocks.
KERNEL finish_columns(float *sums, int, const double *work, int chunks, int columns) {
	int j = block_column();
	double sum = 0;
	if (j < columns) {
		for (int c = threadIdx.y; c < chunks; c += CHUNK_LANES) {
			sum += at(work, columns, c, j);
		}
	}
	sum = column_tree(sum);
	if (j < columns && threadIdx.y == 0) {
		sums[j] = (float)sum;
	}
}
