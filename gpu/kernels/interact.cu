#include "aibox.h"

// A block works on one example. Its vectors, which all threads read again and again, are in shared memory,
// unless they are too many for it.

// Dot products of pairs of vectors that are distance elements apart. Thread t takes pairs t, t + 256, …
DEVICE void multiply_pairs(float *y, const float *x, int vectors, int dim, int distance) {
	int pairs = vectors * (vectors - 1) / 2;
	for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
		// Pair p is (v, w), w < v, with p = v·(v−1)/2 + w. The root gives v or a neighbour of it.
		int v = (int)((1 + sqrtf(1 + 8.0f * p)) / 2);
		while (v * (v - 1) / 2 > p) {
			v--;
		}
		while (v * (v + 1) / 2 <= p) {
			v++;
		}
		int w = p - v * (v - 1) / 2;
		const float *a = x + (size_t)v * distance, *b = x + (size_t)w * distance;
		float sum = 0;
		for (int d = 0; d < dim; d++) {
			sum = fmaf(a[d], b[d], sum);
		}
		y[p] = sum;
	}
}

// distance is that of the vectors in shared memory; 0: they are not there.
KERNEL interact(float *__restrict__ y, int ldy, const float *__restrict__ x, int ldx, int vectors, int dim,
	int distance) {
	extern __shared__ float shared[];
	const float *row = &at(x, ldx, blockIdx.x, 0);
	float *out = &at(y, ldy, blockIdx.x, 0);
	if (distance == 0) {
		multiply_pairs(out, row, vectors, dim, dim);
		return;
	}
	for (int k = threadIdx.x; k < vectors * dim; k += blockDim.x) {
		shared[k / dim * distance + k % dim] = row[k];
	}
	__syncthreads();
	multiply_pairs(out, shared, vectors, dim, distance);
}

// For each element of x the sum over all vectors, in their order, of the gradient of the pair times the
// element of that vector. A vector makes a pair with itself whose gradient is zero.
DEVICE void mix_vectors(float *dx, const float *x, const float *dy, int vectors, int dim) {
	for (int k = threadIdx.x; k < vectors * dim; k += blockDim.x) {
		int v = k / dim, d = k % dim;
		float sum = 0;
		for (int w = 0; w < vectors; w++) {
			float g = 0;
			if (w != v) {
				g = w < v ? dy[v * (v - 1) / 2 + w] : dy[w * (w - 1) / 2 + v];
			}
			sum = fmaf(g, x[w * dim + d], sum);
		}
		dx[k] = sum;
	}
}

// in_shared says whether vectors and gradients find room in shared memory.
KERNEL interact_grad(float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx,
	const float *__restrict__ dy, int lddy, int vectors, int dim, int in_shared) {
	extern __shared__ float shared[];
	const float *row = &at(x, ldx, blockIdx.x, 0), *grad = &at(dy, lddy, blockIdx.x, 0);
	float *out = &at(dx, lddx, blockIdx.x, 0);
	if (!in_shared) {
		mix_vectors(out, row, grad, vectors, dim);
		return;
	}
	int elements = vectors * dim;
	for (int k = threadIdx.x; k < elements; k += blockDim.x) {
		shared[k] = row[k];
	}
	for (int p = threadIdx.x; p < vectors * (vectors - 1) / 2; p += blockDim.x) {
		shared[elements + p] = grad[p];
	}
	__syncthreads();
	mix_vectors(out, shared, shared + elements, vectors, dim);
}
