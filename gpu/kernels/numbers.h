// Numbers that are read and written together.
#pragma once

#include "aibox.h"

// Numbers that follow one another. A thread works on 4 of them, which it reads and writes at once, where they are at addresses
// that 16 divides, else on 1: see atOnce.
template <int N> struct alignas(4 * N) Numbers {
	float v[N];
};

template <int N> DEVICE Numbers<N> numbers(const float *from) { return *(const Numbers<N> *)from; }
template <int N> DEVICE void put(float *to, const Numbers<N> &x) { *(Numbers<N> *)to = x; }
