#include "sums.h"

KERNEL column_sums(double *work, const float *x, int ldx, int rows, int columns) {
	int j = block_column();
	sum_chunk(work, rows, columns, [&](int i) { return at(x, ldx, i, j); }, [](float v) { return (double)v; });
}

// The sums of the columns of x, each row i multiplied by g[i].
KERNEL column_dots(double *work, const float *x, int ldx, const float *g, int ldg, int rows, int columns) {
	int j = block_column();
	sum_chunk(work, rows, columns, [&](int i) { return Pair{at(x, ldx, i, j), at(g, ldg, i, 0)}; },
		[](Pair v) { return (double)v.a * (double)v.b; });
}

// Adds up the sums of chunks of one matrix.
DEVICE void finish(float *sums, const double *work, int chunks, int columns) {
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

// finish for up to 4 matrices, one per blockIdx.y. Absent ones have 0 columns.
KERNEL finish_columns(int chunks, float *sums0, const double *work0, int columns0, float *sums1, const double *work1, int columns1,
	float *sums2, const double *work2, int columns2, float *sums3, const double *work3, int columns3) {
	bool odd = blockIdx.y & 1, high = blockIdx.y & 2;
	float *low_sums = odd ? sums1 : sums0, *high_sums = odd ? sums3 : sums2;
	const double *low_work = odd ? work1 : work0, *high_work = odd ? work3 : work2;
	int low_columns = odd ? columns1 : columns0, high_columns = odd ? columns3 : columns2;
	finish(high ? high_sums : low_sums, high ? high_work : low_work, chunks, high ? high_columns : low_columns);
}
