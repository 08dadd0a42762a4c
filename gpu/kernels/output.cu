#include "activation.h"
#include "loss.h"
#include "pairs.h"
#include "rows.h"

// Each row has LANES threads, which read it twice: for its logit, and, from a cache, for what goes on to the layer before. put(j, g) takes the
// gradient of column j.
template <class Put> DEVICE void output_rows(float *z, int ldz, float *terms, int ldterms, float *dz, int lddz, const float *__restrict__ x, int ldx,
	const float *__restrict__ w, int ldw, const float *bias, int biased, const float *labels, int ldlabels, const float *weights, int weighted,
	const float *check, int rows, int columns, int total, int a, Put put) {
	__shared__ float slopes[256 / LANES];
	int i = thread_number() / LANES, lane = thread_number() % LANES;
	bool inside = i < rows;
	float sum = 0;
	for (int j = lane; inside && j < columns; j += LANES) {
		sum = fmaf(at(x, ldx, i, j), at(w, ldw, j, 0), sum);
	}
	float logit = row_tree(sum), *slope = slopes + threadIdx.x / LANES;
	if (biased) {
		logit += *bias;
	}
	if (inside && lane == 0) {
		at(z, ldz, i, 0) = logit;
		at(dz, lddz, i, 0) = *slope = loss_slope(logit, at(labels, ldlabels, i, 0), weight_of(weights, weighted, i), total);
	}
	if (inside && lane == 1) {
		at(terms, ldterms, i, 0) = loss_term(logit, at(labels, ldlabels, i, 0), weight_of(weights, weighted, i), *check);
	}
	__syncthreads();
	for (int j = lane; inside && j < columns; j += LANES) {
		put(i, j, derived(a, at(x, ldx, i, j), *slope * at(w, ldw, j, 0)));
	}
}

KERNEL output_layer(float *__restrict__ z, int ldz, float *__restrict__ terms, int ldterms, float *__restrict__ dz, int lddz,
	float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *__restrict__ w, int ldw, const float *bias, int biased,
	const float *labels, int ldlabels, const float *weights, int weighted, const float *check, int rows, int columns, int total, int a) {
	output_rows(z, ldz, terms, ldterms, dz, lddz, x, ldx, w, ldw, bias, biased, labels, ldlabels, weights, weighted, check, rows, columns, total, a,
		[=](int i, int j, float g) { at(dx, lddx, i, j) = g; });
}

// output_layer where dx is needed in bfloat16 alone.
KERNEL output_layer_bf16(float *__restrict__ z, int ldz, float *__restrict__ terms, int ldterms, float *__restrict__ dz, int lddz,
	unsigned short *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *__restrict__ w, int ldw, const float *bias,
	int biased, const float *labels, int ldlabels, const float *weights, int weighted, const float *check, int rows, int columns, int total, int a) {
	output_rows(z, ldz, terms, ldterms, dz, lddz, x, ldx, w, ldw, bias, biased, labels, ldlabels, weights, weighted, check, rows, columns, total, a,
		[=](int i, int j, float g) { at(dx, lddx, i, j) = bf16_bits(g); });
}

// The sums of chunks of x, each row times its number of g, and of what goes on to the layer before.
template <bool WIDE> DEVICE void output_chunk(double *dots, double *sums, const float *g, int ldg, const float *w, int ldw, const float *x, int ldx,
	int rows, int columns, int a) {
	int j = pair_column();
	bool both = j + 1 < columns;
	Pair weight = {j < columns ? at(w, ldw, j, 0) : 0, both ? at(w, ldw, j + 1, 0) : 0};
	double dot_a = 0, dot_b = 0, sum_a = 0, sum_b = 0;
	if (j < columns) {
		each_row<8>(rows, [=](int i) { return loaded(get_pair<WIDE>(x, ldx, i, j, both), at(g, ldg, i, 0)); }, [&](int, Loaded<float2, float> v) {
			Pair x = values(v.first);
			float slope = v.second;
			dot_a += (double)x.a * (double)slope;
			dot_b += (double)x.b * (double)slope;
			sum_a += (double)derived(a, x.a, slope * weight.a);
			sum_b += (double)derived(a, x.b, slope * weight.b);
		});
	}
	put_pair_chunk(dots, columns, dot_a, dot_b);
	__syncthreads();
	put_pair_chunk(sums, columns, sum_a, sum_b);
}

KERNEL output_sums(double *__restrict__ dots, double *__restrict__ sums, const float *__restrict__ g, int ldg, const float *__restrict__ w, int ldw,
	const float *__restrict__ x, int ldx, int rows, int columns, int a) {
	if (is_wide(x, ldx, columns)) {
		output_chunk<true>(dots, sums, g, ldg, w, ldw, x, ldx, rows, columns, a);
	} else {
		output_chunk<false>(dots, sums, g, ldg, w, ldw, x, ldx, rows, columns, a);
	}
}
