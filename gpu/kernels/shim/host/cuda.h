// Enough of CUDA C++ to compile the kernels for the CPU. It is included before the sources. The threads
// of a block take turns (see host.cc): so shared memory is memory of the only thread that there is, and
// what CUDA knows of the present thread are global variables.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ __constinit thread_local // so all of it lies in one piece, see check.cc
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
	unsigned x, y, z;
};
extern dim3 gridDim, blockDim, blockIdx, threadIdx;

struct __align__(8) float2 {
	float x, y;
};

struct __align__(16) float4 {
	float x, y, z, w;
};

// The memory that a launch asks for: extern __shared__ __align__(16) float shared[].
extern __shared__ __align__(16) float shared[];

// Returns when all threads of the block have come to it.
#define __syncthreads() synchronize(__FILE__, __LINE__)
void synchronize(const char *file, int line);

template <class To, class From> static inline To same_bits(From from) {
	static_assert(sizeof(To) == sizeof(From), "numbers of one size");
	To to;
	memcpy(&to, &from, sizeof to);
	return to;
}

static inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned __int128)x * y >> 64; }
static inline double __longlong_as_double(long long x) { return same_bits<double>(x); }

// Says that this thread reads and writes so many bytes at once.
void access_atomically(void *at, size_t bytes);

// Threads take turns only where they wait for one another.
template <class T> __attribute__((no_sanitize("thread"))) static T atomicMin(T *at, T v) {
	access_atomically(at, sizeof v);
	T was = *at;
	*at = v < was ? v : was;
	return was;
}
