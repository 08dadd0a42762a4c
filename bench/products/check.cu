// Runs product.cuh on the CPU, where the threads of a block take turns, and compares it with sums in float64. Its exit status says how it went.
#include "cuda.h"

#include <functional>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <ucontext.h>
#include <vector>

#define ON_CPU

enum { MOST_THREADS = 256, STACK_BYTES = 64 << 10, SHARED_BYTES = 64 << 10 };
dim3 gridDim, blockDim, blockIdx, threadIdx;
__shared__ __align__(16) float shared[SHARED_BYTES / sizeof(float)] = {};

// A thread of a block is a coroutine, which runs until it ends or comes to __syncthreads.
static struct Thread {
	ucontext_t context;
	char stack[STACK_BYTES];
	enum { READY, WAITS, ENDED } state;
} threads[MOST_THREADS];
static Thread *present;
static ucontext_t scheduler;
static std::function<void()> kernel;

void synchronize(const char *, int) {
	present->state = Thread::WAITS;
	swapcontext(&present->context, &scheduler);
}

static void begin() {
	kernel();
	present->state = Thread::ENDED;
}

// Runs the threads of a block, in ascending or in descending order: a kernel that lacks a __syncthreads gives other results in one
// of them. Returns what went wrong.
static std::string run_block(unsigned shared_bytes, bool descending) {
	unsigned n = blockDim.x;
	if (n > MOST_THREADS || shared_bytes > sizeof shared) return "the block is too large";
	for (unsigned t = 0; t < n; t++) {
		ucontext_t &c = threads[t].context;
		getcontext(&c);
		c.uc_stack.ss_sp = threads[t].stack, c.uc_stack.ss_size = STACK_BYTES, c.uc_link = &scheduler;
		makecontext(&c, begin, 0);
		threads[t].state = Thread::READY;
	}
	memset(shared, 0xff, sizeof shared); // NaN
	for (unsigned waiting = n; waiting > 0;) {
		waiting = 0;
		for (unsigned k = 0; k < n; k++) {
			unsigned t = descending ? n - 1 - k : k;
			present = &threads[t], threadIdx = {t, 0, 0};
			if (present->state == Thread::ENDED) continue;
			swapcontext(&scheduler, &present->context);
			waiting += present->state == Thread::WAITS;
		}
		if (waiting > 0 && waiting < n) return "some threads of a block have ended where others wait for them";
	}
	return "";
}

// What a thread gives to the others of its warp.
static struct {
	uint32_t a[4], b[2];
	float v;
} given[MOST_THREADS];

static void copy16(float *to, const float *from, int bytes) {
	if (((size_t)to | (size_t)from) % 16 != 0) {
		fprintf(stderr, "a copy of 16 bytes from %p to %p\n", (const void *)from, (void *)to);
		exit(1);
	}
	memset(to, 0, 16);
	memcpy(to, from, bytes);
}
static void commit_copies() {}
template <int N> static void wait_copies() {}

// A tensor core takes the first 19 bits of a number.
static float taken(uint32_t x) { return __uint_as_float(x & 0xffffe000u); }

static void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	int first = threadIdx.x / 32 * 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
	memcpy(given[threadIdx.x].a, a, sizeof a);
	memcpy(given[threadIdx.x].b, b, sizeof b);
	__syncthreads();
	for (int q = 0; q < 4; q++)
		for (int k = 0; k < 8; k++)
			c[q] += taken(given[first + g * 4 + k % 4].a[q / 2 + k / 4 * 2]) * taken(given[first + (2 * t + q % 2) * 4 + k % 4].b[k / 4]);
	__syncthreads();
}

static float sum_of_rows(float v) {
	given[threadIdx.x].v = v;
	__syncthreads();
	v = 0;
	for (int g = 0; g < 8; g++) v += given[threadIdx.x / 32 * 32 + g * 4 + threadIdx.x % 4].v;
	__syncthreads();
	return v;
}

#include "product.cuh"

#include <random>

static Params params;
static std::mt19937 rng(1);
static bool failed;

// A matrix whose rows have gaps, with NaN in them, or another number.
struct Matrix {
	int stride;
	float *at;

	Matrix(int rows, int columns, int stride, float gap) : stride(stride), at((float *)aligned_alloc(16, (size_t)rows * stride * 4 + 12 & ~15)) {
		std::uniform_real_distribution<float> values(-1, 1);
		for (int i = 0; i < rows * stride; i++) at[i] = i % stride < columns ? values(rng) : gap;
	}
	~Matrix() { free(at); }
	float get(int i, int j, bool transposed) const { return transposed ? at[j * stride + i] : at[i * stride + j]; }
};

template <int PRODUCTS, int BM, int BN, int WM, int WN, bool TA, bool TB> static void check(int m, int n, int k, int parts, bool derive) {
	auto aligned = [](int n) { return n / 4 * 4 + 4; };
	Matrix a(TA ? k : m, TA ? m : k, aligned(TA ? m : k), NAN), b(TB ? n : k, TB ? k : n, aligned(TB ? k : n), NAN);
	int ldc = (m + n) % 2 ? n + 3 : aligned(n);
	Matrix c(m * parts, 0, ldc, 777), y(m, n, ldc, NAN), sums((m + WM - 1) / WM, 0, n, 777);
	int each = ((k + parts - 1) / parts + BK - 1) / BK * BK;
	params = Params{a.at, b.at, c.at, m, n, k, a.stride, b.stride, c.stride, each, derive ? y.at : nullptr, sums.at};
	gridDim = {(unsigned)((n + BN - 1) / BN), (unsigned)((m + BM - 1) / BM), (unsigned)((k + each - 1) / each)};
	blockDim = {(BM / WM) * (BN / WN) * 32, 1, 1};
	kernel = [] { product<PRODUCTS, BM, BN, WM, WN, TA, TB, 4, 1>(params); };
	unsigned block = 0;
	for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
				std::string fault = run_block(4 * (BM + BN) * BK * sizeof(float), block++ % 2);
				if (fault != "") fprintf(stderr, "%s\n", fault.c_str()), exit(1);
			}
	double worst = 0;
	for (int i = 0; i < m; i++)
		for (int j = 0; j < c.stride; j++) {
			double want = 0, size = 0, got = 0;
			for (int q = 0; q < k && j < n; q++) {
				double v = (double)a.get(i, q, TA) * b.get(q, j, TB);
				want += v, size += fabs(v);
			}
			for (unsigned z = 0; z < gridDim.z; z++) got += c.get(z * m + i, j, false);
			if (derive && j < n && !(y.get(i, j, false) > 0)) want = 0;
			double e = j < n ? fabs(got - want) / size : got != 777 * (int)gridDim.z;
			if (!(e <= worst)) worst = e;
		}
	for (int j = 0; j < n && derive; j++) {
		double want = 0, got = 0;
		for (int i = 0; i < m; i++) want += c.get(i, j, false);
		for (int i = 0; i < (m + WM - 1) / WM; i++) got += sums.get(i, j, false);
		if (!(fabs(got - want) <= 1e-4)) worst = INFINITY;
	}
	bool bad = !(worst <= (PRODUCTS == 3 ? 3e-7 : 1e-3));
	failed |= bad;
	printf("%d products, %dx%d, transposed %d %d, %d x %d x %d in %u parts, derived %d: %.2g%s\n", PRODUCTS, BM, BN, TA, TB, m, n, k, gridDim.z, derive,
		worst, bad ? " FAILED" : "");
}

int main() {
	check<3, 64, 64, 32, 32, false, false>(70, 50, 37, 1, false);
	check<3, 64, 64, 32, 32, false, true>(70, 50, 37, 1, true);
	check<3, 64, 64, 32, 32, true, false>(70, 50, 137, 3, false);
	check<3, 128, 128, 64, 64, false, false>(130, 70, 67, 1, false);
	check<3, 128, 128, 64, 64, false, true>(131, 141, 65, 1, true);
	check<3, 128, 128, 64, 64, true, false>(131, 152, 130, 2, false);
	check<3, 128, 64, 64, 32, false, true>(1, 1, 1, 1, true);
	check<1, 128, 64, 64, 32, false, true>(200, 71, 65, 1, true);
	check<1, 128, 128, 64, 32, true, false>(5, 3, 200, 2, false);
	return failed;
}
