#include "rows.h"

KERNEL row_sum(float *y, int ldy, const float *x, int ldx, int rows, int columns) {
	int i = thread_number() / LANES, lane = thread_number() % LANES;
	float sum = 0;
	if (i < rows) {
		for (int j = lane; j < columns; j += LANES) {
			sum += at(x, ldx, i, j);
		}
	}
	sum = row_tree(sum);
	if (i < rows && lane == 0) {
		at(y, ldy, i, 0) = sum;
	}
}

KERNEL row_dot(float *z, int ldz, const float *x, int ldx, const float *y, int ldy, int rows, int columns) {
	int i = thread_number() / LANES, lane = thread_number() % LANES;
	float sum = 0;
	if (i < rows) {
		for (int j = lane; j < columns; j += LANES) {
			sum = fmaf(at(x, ldx, i, j), at(y, ldy, i, j), sum);
		}
	}
	sum = row_tree(sum);
	if (i < rows && lane == 0) {
		at(z, ldz, i, 0) = sum;
	}
}

// The sum of element d over all vectors of a row.
DEVICE float vector_sum(const float *row, int columns, int dim, int d) {
	float sum = 0;
	for (int f = d; f < columns; f += dim) {
		sum += row[f];
	}
	return sum;
}

// Each of the 16 threads of a row takes every 16th of the dim elements.
KERNEL fm(float *y, int ldy, const float *x, int ldx, int rows, int columns, int dim) {
	int i = thread_number() / LANES, lane = thread_number() % LANES;
	float total = 0;
	if (i < rows) {
		const float *row = &at(x, ldx, i, 0);
		for (int d = lane; d < dim; d += LANES) {
			float sum = vector_sum(row, columns, dim, d), pairs = 0;
			for (int f = d; f < columns; f += dim) {
				pairs += row[f] * (sum - row[f]);
			}
			total += pairs;
		}
	}
	total = row_tree(total);
	if (i < rows && lane == 0) {
		at(y, ldy, i, 0) = 0.5f * total;
	}
}

// Each thread takes one of the dim elements of one row.
KERNEL fm_grad(float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *dy, int lddy,
	int rows, int columns, int dim) {
	Element e(rows, dim);
	if (e.outside) {
		return;
	}
	const float *row = &at(x, ldx, e.i, 0);
	float sum = vector_sum(row, columns, dim, e.j), g = at(dy, lddy, e.i, 0);
	for (int f = e.j; f < columns; f += dim) {
		at(dx, lddx, e.i, f) = g * (sum - row[f]);
	}
}
