#include "activation.h"
#include "loss.h"
#include "numbers.h"
#include "pairs.h"
#include "rows.h"

// OUTPUT_LANES threads share a row. Each does the sums of four of the threads of row_tree, so that
// it reads four numbers in one access.
enum { OUTPUT_LANES = LANES / 4, OUTPUT_ROWS = 16 };

// The result of row_tree for the sums of all its threads.
DEVICE float tree_of(const float *sums) {
	float tree[LANES];
	for (int i = 0; i < LANES; i++) {
		tree[i] = sums[i];
	}
#pragma unroll
	for (int w = LANES / 2; w > 0; w /= 2) {
		for (int i = 0; i < w; i++) {
			tree[i] += tree[i + w];
		}
	}
	return tree[0];
}

// Copies n elements, ld apart, to shared memory. thread is the number of this one of the threads.
DEVICE void copy_elements(float *to, const float *x, int ld, int n, int thread, int threads) {
	enum { TURN = 16 }; // the loads of a turn overlap
	int fours = ld == 1 && (size_t)x % 16 == 0 ? n / 4 : 0;
	for (int k = thread; k < fours; k += TURN * threads) {
		float4 some[TURN];
		for (int u = 0; u < TURN; u++) {
			int at = k + u * threads;
			some[u] = ((const float4 *)x)[at < fours ? at : fours - 1];
		}
		for (int u = 0; u < TURN; u++) {
			int at = k + u * threads;
			((float4 *)to)[at < fours ? at : fours - 1] = some[u];
		}
	}
	for (int k = 4 * fours + thread; k < n; k += threads) {
		to[k] = at(x, ld, k, 0);
	}
}

DEVICE void put_four(float *y, const float *x) { put(y, numbers<4>(x)); }
DEVICE void put_four(unsigned short *y, const float *x) { put((float *)y, Numbers<2>{{bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3])}}); }

// A thread's part of a row x: every fourth group of four numbers, from number first on.
struct OutputRow {
	const float *x, *w;
	int ldw, columns, first;

	// Numbers j to j+3. Those behind the last are 0, or anything in shared memory, which has room
	// there.
	template <bool SHARED> DEVICE Numbers<4> four_of(const float *x, int ld, int j) const {
		if constexpr (SHARED) {
			return numbers<4>(x + j);
		} else {
			Numbers<4> some = {};
			for (int h = 0; h < 4; h++) {
				if (j + h < columns) {
					some.v[h] = at(x, ld, j + h, 0);
				}
			}
			return some;
		}
	}

	// Adds the products with w to sum, which has one sum for each of the four.
	template <bool SHARED> DEVICE void add_up(float *sum) const {
#pragma unroll 4
		for (int j = first; j < columns; j += LANES) {
			Numbers<4> value = four_of<SHARED>(x, 1, j), by = four_of<SHARED>(w, ldw, j);
			for (int h = 0; h < 4; h++) {
				if (j + h < columns) {
					sum[h] = fmaf(value.v[h], by.v[h], sum[h]);
				}
			}
		}
	}

	// Computes dx, the gradient for the layer before. If it is aligned, four numbers are one store.
	template <bool SHARED, class Y> DEVICE void derive(Y *dx, bool aligned, float slope, int a) const {
#pragma unroll 4
		for (int j = first; j < columns; j += LANES) {
			Numbers<4> value = four_of<SHARED>(x, 1, j), by = four_of<SHARED>(w, ldw, j);
			for (int h = 0; h < 4; h++) {
				value.v[h] = derived(a, value.v[h], slope * by.v[h]);
			}
			if (aligned) {
				put_four(dx + j, value.v);
				continue;
			}
			for (int h = 0; h < 4; h++) {
				if (j + h < columns) {
					put(dx + j + h, value.v[h]);
				}
			}
		}
	}
};

// Shared memory has w and then the rows of the block, size elements apart, so that each is read
// from memory once. size is 0 if they do not fit.
template <class Y> DEVICE void output_rows(float *z, int ldz, float *terms, int ldterms, float *dz, int lddz, Y *__restrict__ dx, int lddx,
	const float *__restrict__ x, int ldx, const float *__restrict__ w, int ldw, const float *bias, int biased,
	const float *labels, int ldlabels, const float *weights, int weighted, const float *check, int rows, int columns, int total, int a, int size, float *shared) {
	__shared__ __align__(16) float sums[OUTPUT_ROWS][LANES];
	int i = thread_number() / OUTPUT_LANES, lane = threadIdx.x % OUTPUT_LANES, place = threadIdx.x / OUTPUT_LANES;
	bool inside = i < rows;
	OutputRow row{&at(x, ldx, i, 0), w, ldw, columns, 4 * lane};
	float label = 0, weight = 0, sum[4] = {};
	if (inside) {
		label = at(labels, ldlabels, i, 0);
		weight = weight_of(weights, weighted, i);
	}
	if (size > 0) {
		float *kept = shared + (place + 1) * size;
		// The loads of the first weights overlap with those of the rows.
		int fours = ldw == 1 && (size_t)w % 16 == 0 ? columns / 4 : 0, done = 4 * (fours < (int)blockDim.x ? fours : blockDim.x);
		bool early = (int)threadIdx.x < fours;
		float4 four_weights = {};
		if (early) {
			four_weights = ((const float4 *)w)[threadIdx.x];
		}
		if (inside) {
			copy_elements(kept, row.x, 1, columns, lane, OUTPUT_LANES);
		}
		if (early) {
			((float4 *)shared)[threadIdx.x] = four_weights;
		}
		copy_elements(shared + done, w + (size_t)done * ldw, ldw, columns - done, threadIdx.x, blockDim.x);
		row.x = kept, row.w = shared;
		__syncthreads();
		if (inside) {
			row.add_up<true>(sum);
		}
	} else if (inside) {
		row.add_up<false>(sum);
	}
	for (int h = 0; h < 4; h++) {
		sums[place][row.first + h] = sum[h];
	}
	__syncthreads();
	if (!inside) {
		return;
	}
	float logit = tree_of(sums[place]);
	if (biased) {
		logit += *bias;
	}
	float slope = loss_slope(logit, label, weight, total);
	Y *down = &at(dx, lddx, i, 0);
	bool aligned = columns % 4 == 0 && (size_t)down % (4 * sizeof(Y)) == 0;
	if (size == 0) {
		row.derive<false>(down, aligned, slope, a);
	} else if (a == RELU) {
		row.derive<true>(down, aligned, slope, RELU); // a constant: no branches
	} else {
		row.derive<true>(down, aligned, slope, a);
	}
	if (lane == 0) {
		at(z, ldz, i, 0) = logit;
		at(dz, lddz, i, 0) = slope;
		at(terms, ldterms, i, 0) = loss_term(logit, label, weight, *check);
	}
}

#define OUTPUT_KERNEL extern "C" __global__ void __launch_bounds__(OUTPUT_ROWS * OUTPUT_LANES)

OUTPUT_KERNEL output_layer(float *__restrict__ z, int ldz, float *__restrict__ terms, int ldterms, float *__restrict__ dz, int lddz,
	float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *__restrict__ w, int ldw, const float *bias, int biased,
	const float *labels, int ldlabels, const float *weights, int weighted, const float *check, int rows, int columns, int total, int a, int size) {
	extern __shared__ __align__(16) float shared[];
	output_rows(z, ldz, terms, ldterms, dz, lddz, dx, lddx, x, ldx, w, ldw, bias, biased, labels, ldlabels, weights, weighted, check, rows, columns, total, a,
		size, shared);
}

// output_layer with dx in bfloat16 alone.
OUTPUT_KERNEL output_layer_bf16(float *__restrict__ z, int ldz, float *__restrict__ terms, int ldterms, float *__restrict__ dz, int lddz,
	unsigned short *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx, const float *__restrict__ w, int ldw, const float *bias, int biased,
	const float *labels, int ldlabels, const float *weights, int weighted, const float *check, int rows, int columns, int total, int a, int size) {
	extern __shared__ __align__(16) float shared[];
	output_rows(z, ldz, terms, ldterms, dz, lddz, dx, lddx, x, ldx, w, ldw, bias, biased, labels, ldlabels, weights, weighted, check, rows, columns, total, a,
		size, shared);
}

// Computes two sums over the chunk: dots of x, each row i multiplied by g[i], and sums of the
// gradient for the layer before.
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
