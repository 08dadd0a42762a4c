// Vector loads and stores.
#pragma once

#include "aibox.h"

// N adjacent numbers, which a thread reads or writes in one access. N is 4 where addresses are
// multiples of 16, else 1: see atOnce.
template <int N> struct alignas(4 * N) Numbers {
	float v[N];
};

template <int N> DEVICE Numbers<N> numbers(const float *from) { return *(const Numbers<N> *)from; }
template <int N> DEVICE void put(float *to, const Numbers<N> &x) { *(Numbers<N> *)to = x; }
