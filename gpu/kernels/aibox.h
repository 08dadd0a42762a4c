// Definitions shared by all kernels. See doc.go for the rules that kernels follow.
#pragma once

#include <stddef.h>

// A kernel that is launched with blocks of 256 threads. Its outputs overlap none of its other
// arguments. They are __restrict__ where a loop would otherwise reload its inputs after each write.
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
// A memory-bound kernel. Its registers are limited so that a multiprocessor has room for 8 blocks.
#define WAITING_KERNEL extern "C" __global__ void __launch_bounds__(256, 8)
#define DEVICE __device__ __forceinline__

// The number of this thread in a one-dimensional launch.
DEVICE unsigned thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

// The element of a matrix that this thread works on. Surplus threads are outside.
struct Element {
	unsigned i, j; // row and column
	bool outside;
	__device__ Element(int rows, int columns) {
		unsigned t = thread_number();
		outside = t >= (unsigned)rows * (unsigned)columns;
		i = outside ? 0 : t / (unsigned)columns;
		j = outside ? 0 : t - i * (unsigned)columns; // for %, the compiler would divide again
	}
};

// Element (i, j) of a matrix whose rows are stride elements apart.
template <class T> DEVICE T &at(T *m, int stride, unsigned i, unsigned j) { return m[(size_t)i * stride + j]; }
