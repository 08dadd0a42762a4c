// Kernels that have a fault each, of which check.cc is to say what is behind FOUND, and some that have none. They are launched with 2 blocks of
// 64 threads and 256 bytes of shared memory. x has two rows of 128 numbers with a gap of as many between, and y 128 numbers.
#include "../../numbers.h"

DEVICE float from_left(float *shared, float v, bool waits) {
	shared[threadIdx.x] = v;
	if (waits) {
		__syncthreads();
	}
	return shared[threadIdx.x ^ 1];
}

// FOUND: writes 4 bytes of shared memory, which were read by thread 0 (checked.cu:10 in checked.cu:16), and nothing orders the two
KERNEL read_too_early(float *y, const float *x) {
	__shared__ float sums[64];
	y[thread_number()] = from_left(sums, x[thread_number()], false);
}

// FOUND: reads 4 bytes of shared memory, which were written by thread 0 (checked.cu:6 in checked.cu:24)
KERNEL written_too_early(float *y, const float *x) {
	__shared__ float sums[64];
	float v = x[thread_number()];
	for (int k = 0; k < 2; k++) {
		v = from_left(sums, v, true);
	}
	y[thread_number()] = v;
}

KERNEL ordered(float *y, const float *x) {
	__shared__ float sums[64];
	float v = x[thread_number()];
	for (int k = 0; k < 2; k++) {
		v = from_left(sums, v, true);
		__syncthreads();
	}
	y[thread_number()] = v;
}

// As if the threads of a warp waited for one another.
// FOUND: of shared memory, which were
KERNEL within_a_warp(float *y, const float *x) {
	__shared__ float sums[64];
	sums[threadIdx.x] = x[thread_number()];
	__syncthreads();
	for (unsigned w = 32; w > 0; w /= 2) {
		if (threadIdx.x < w) {
			sums[threadIdx.x] += sums[threadIdx.x + w];
		}
		if (w > 16) {
			__syncthreads();
		}
	}
	y[thread_number()] = sums[0];
}

// FOUND: of another block (checked.cu:57), and nothing orders the two
KERNEL blocks_write(float *y, const float *) { y[threadIdx.x] = y[64 + threadIdx.x] = blockIdx.x; }

KERNEL blocks_write_the_same(float *y, const float *x) { y[threadIdx.x] = y[64 + threadIdx.x] = x[0]; }

// FOUND: which were read by threads of several blocks (checked.cu:64), and nothing orders the two
KERNEL reads_another_block(float *y, const float *x) {
	y[thread_number()] += x[thread_number()];
	y[thread_number()] += y[thread_number() ^ 64];
}

KERNEL half_of_a_word(unsigned short *y, const float *x) {
	y[2 * thread_number()] = y[2 * thread_number() + 1] = x[0];
}

KERNEL least(unsigned *y, const float *) { atomicMin(&y[threadIdx.x / 2], thread_number()); }

// FOUND: an atomic operation
KERNEL least_and_more(unsigned *y, const float *) {
	atomicMin(&y[0], thread_number());
	if (thread_number() == 127) {
		y[0] += 1;
	}
}

// FOUND: which nobody has written
KERNEL reads_what_nobody_wrote(float *y, const float *x) { y[thread_number()] += x[thread_number()]; }

// FOUND: writes 4 bytes of argument 0 at -4, outside of the arguments
KERNEL writes_in_front(float *y, const float *x) { y[(int)thread_number() - 1] = x[0]; }

// FOUND: reads 4 bytes of argument 1 at 1536, outside of the arguments
KERNEL reads_behind(float *y, const float *x) { y[thread_number()] = x[256 + thread_number() + 1]; }

// FOUND: reads 4 bytes of argument 1 at 512, outside of the arguments
KERNEL reads_a_gap(float *y, const float *x) { y[thread_number()] = x[thread_number() + 1]; }

// FOUND: which it may only read
KERNEL writes_to_read(float *y, const float *x) { ((float *)x)[thread_number()] = y[thread_number()] = 1; }

// FOUND: outside of the arguments
KERNEL reads_nowhere(float *y, const float *x) { y[thread_number()] = x[1 << 28]; }

// FOUND: of which the launch has 256 bytes
KERNEL too_much_shared(float *y, const float *x) {
	extern __shared__ __align__(16) float shared[];
	y[thread_number()] = from_left(shared + 1, x[thread_number()], true);
}

KERNEL enough_shared(float *y, const float *x) {
	extern __shared__ __align__(16) float shared[];
	y[thread_number()] = from_left(shared, x[thread_number()], true);
}

// FOUND: the result depends on shared memory that no thread has written
KERNEL unwritten_shared(float *y, const float *x) {
	__shared__ float sums[64];
	if (threadIdx.x % 4 != 1) {
		sums[threadIdx.x] = x[thread_number()];
	}
	__syncthreads();
	y[thread_number()] = sums[threadIdx.x ^ 1] > 0.5f ? 1 : 0; // of NaN, too
}

KERNEL unwritten_but_dropped(float *y, const float *x) {
	__shared__ float sums[64];
	if (threadIdx.x % 4 != 1) {
		sums[threadIdx.x] = x[thread_number()];
	}
	__syncthreads();
	float v = sums[threadIdx.x ^ 1];
	y[thread_number()] = (threadIdx.x ^ 1) % 4 == 1 ? x[thread_number()] : v;
}

// FOUND: some threads of a block have ended where others wait
KERNEL some_have_ended(float *y, const float *x) {
	y[thread_number()] = x[thread_number()];
	if (threadIdx.x < 32) {
		__syncthreads();
	}
}

// FOUND: threads of a block wait in different lines
KERNEL different_lines(float *y, const float *x) {
	y[thread_number()] = x[thread_number()];
	if (threadIdx.x < 32) {
		__syncthreads();
	} else {
		__syncthreads();
	}
}

// FOUND: an address that is not a multiple
KERNEL misaligned(float *y, const float *x) { y[thread_number()] = numbers<4>(x + threadIdx.x / 4).v[0]; }

// FOUND: an element that the array does not have
KERNEL behind_an_array(float *y, const float *x) {
	__shared__ float sums[64];
	sums[threadIdx.x + blockIdx.x] = x[thread_number()];
	__syncthreads();
	y[thread_number()] = sums[threadIdx.x];
}

// FOUND: a product that an integer does not hold
KERNEL too_large_an_index(float *y, const float *x) {
	int i = thread_number() * 32;
	y[thread_number()] = x[(i * (1 << 20)) >> 26 & 1];
}
