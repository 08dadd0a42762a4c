#include "sums.h"

// Statistics are two rows: means, then variances.

DEVICE float inverse_deviation(float variance) { return (float)(1 / sqrt((double)variance + 1e-5)); }

KERNEL norm_squares(double *work, const float *x, int ldx, const float *sums, int, int rows, int columns, int count) {
	int j = block_column();
	float mean = j < columns ? sums[j] / (float)count : 0;
	sum_chunk(work, rows, columns, [=](int i) { return at(x, ldx, i, j); }, [=](float v) {
		double d = (double)v - (double)mean;
		return d * d;
	});
}

KERNEL norm_statistics(float *stats, int ldstats, const float *sums, int, const float *squares, int, int columns,
	int count) {
	Element e(1, columns);
	if (e.outside) {
		return;
	}
	at(stats, ldstats, 0, e.j) = sums[e.j] / (float)count;
	at(stats, ldstats, 1, e.j) = squares[e.j] / (float)count;
}

KERNEL normalize(float *__restrict__ y, int ldy, const float *__restrict__ x, int ldx, const float *gamma, int,
	const float *beta, int, const float *stats, int ldstats, int rows, int columns) {
	int j = block_column();
	if (j >= columns) {
		return;
	}
	float mean = at(stats, ldstats, 0, j), scale = inverse_deviation(at(stats, ldstats, 1, j));
	float g = gamma[j], b = beta[j];
	for (int i = blockIdx.y * CHUNK_ROWS + threadIdx.y; i < chunk_end(rows); i += CHUNK_LANES) {
		at(y, ldy, i, j) = g * ((at(x, ldx, i, j) - mean) * scale) + b;
	}
}

KERNEL norm_gamma(double *work, const float *x, int ldx, const float *stats, int ldstats, const float *dy, int lddy,
	int rows, int columns) {
	int j = block_column();
	float mean = 0, scale = 0;
	if (j < columns) {
		mean = at(stats, ldstats, 0, j);
		scale = inverse_deviation(at(stats, ldstats, 1, j));
	}
	sum_chunk(work, rows, columns, [=](int i) { return Pair{at(x, ldx, i, j), at(dy, lddy, i, j)}; },
		[=](Pair v) { return (double)(v.b * ((v.a - mean) * scale)); });
}

KERNEL norm_input(float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *gamma, int,
	const float *stats, int ldstats, const float *dgamma, int, const float *dbeta, int,
	const float *__restrict__ dy, int lddy, int rows, int columns, int count) {
	int j = block_column();
	if (j >= columns) {
		return;
	}
	float mean = at(stats, ldstats, 0, j), scale = inverse_deviation(at(stats, ldstats, 1, j));
	float mean_grad = dbeta[j] / (float)count, slope = dgamma[j] / (float)count;
	float factor = gamma[j] * scale;
	for (int i = blockIdx.y * CHUNK_ROWS + threadIdx.y; i < chunk_end(rows); i += CHUNK_LANES) {
		float normalized = (at(x, ldx, i, j) - mean) * scale;
		at(dx, lddx, i, j) = factor * (at(dy, lddy, i, j) - mean_grad - normalized * slope);
	}
}

KERNEL update_running(float *running, int ldrunning, const float *stats, int ldstats, const int *flag, int columns,
	int count) {
	Element e(1, columns);
	if (e.outside || *flag) {
		return;
	}
	float &mean = at(running, ldrunning, 0, e.j), &variance = at(running, ldrunning, 1, e.j);
	mean += 0.1f * (at(stats, ldstats, 0, e.j) - mean);
	if (count > 1) {
		float unbiased = (float)((double)count / (double)(count - 1));
		variance += 0.1f * (at(stats, ldstats, 1, e.j) * unbiased - variance);
	}
}
