// What all kernels share. See doc.go for the rules that they follow.
#pragma once

#include <stddef.h>

// A kernel that is launched with blocks of 256 threads. What it writes overlaps none of its other
// arguments; __restrict__ says so where a loop would otherwise read again after each write.
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
// A kernel of little but waiting for memory: so few registers that a multiprocessor has room for 8 such blocks at a time.
#define WAITING_KERNEL extern "C" __global__ void __launch_bounds__(256, 8)
#define DEVICE __device__ __forceinline__

// The number of this thread, counted over all blocks of a launch in one dimension.
DEVICE unsigned thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The element of a matrix that this thread works on. Threads that have none are outside.
struct Element {
	unsigned i, j; // row and column
	bool outside;
	__device__ Element(int rows, int columns) {
		unsigned t = thread_number();
		outside = t >= (unsigned)rows * (unsigned)columns;
		i = outside ? 0 : t / (unsigned)columns;
		j = outside ? 0 : t - i * (unsigned)columns; // with %, the compiler divides once more
	}
};

// Element (i, j) of a matrix whose rows are stride elements apart.
template <class T> DEVICE T &at(T *m, int stride, unsigned i, unsigned j) { return m[(size_t)i * stride + j]; }
