// Sums over the columns of a row.
#pragma once

#include "aibox.h"

// Rows are summed up by 16 threads each, in the order of kernel.Sum: thread i adds what it computes of
// elements i, i+16, …, starting from +0, and row_tree adds those of the threads.
enum { LANES = 16 };

// Adds v over each 16 threads that follow one another, as a tree: threads i and i+8 for i < 8, then i and
// i+4, i and i+2, and last 0 and 1. Thread 0 of them gets the result. All threads of the
// block must call it, once in a kernel.
DEVICE float row_tree(float v) {
	__shared__ float sums[256];
	unsigned t = threadIdx.x, lane = t % LANES;
	sums[t] = v;
	for (unsigned w = LANES / 2; w > 0; w /= 2) {
		__syncthreads();
		if (lane < w) {
			sums[t] += sums[t + w];
		}
	}
	return sums[t];
}
