// Sums over the columns of a row.
#pragma once

#include "aibox.h"

// 16 threads sum up each row, in the order of kernel.Sum. Thread i adds the terms of elements i,
// i+16, …, starting from +0, and row_tree adds up the sums of the threads.
enum { LANES = 16 };

// Adds v over each group of 16 consecutive threads, as a tree: threads i and i+8 for i < 8, then i
// and i+4, i and i+2, and last 0 and 1. Thread 0 of the group gets the result. All threads of the
// block must call it, once per kernel.
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
