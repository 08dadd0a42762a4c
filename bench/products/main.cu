// Times the products of DLRM's layers by product.cuh beside cuBLAS, on the first device. README.md says how.

#include "product.cuh"

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define CHECK(call) \
	do { \
		auto r = (call); \
		if ((int)r != 0) fprintf(stderr, "%s:%d: %s is %d\n", __FILE__, __LINE__, #call, (int)r), exit(1); \
	} while (0)

struct Shape {
	int m, n, k;
	bool ta, tb;
};

enum { MOST_ROWS = 64, MOST = 65536 * 512, PARTS_NUMBERS = 1 << 26, REPEATED = 10, ROUNDS = 4 };

static float *a, *b, *c, *y, *parts, *sums, *bias_gradient;
static double *reference_numbers;
static cublasHandle_t blas;
static cudaStream_t stream;
static int multiprocessors;

__global__ void fill(float *x, size_t n, unsigned seed) {
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
		unsigned long long z = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		x[i] = ((unsigned)(z ^ z >> 31) / 4294967296.0f - 0.3f) * 2; // more positive ones, so that sums grow
	}
}

// Sums of products and of their sizes, of every row_step-th row.
__global__ void reference(double *to, const float *a, const float *b, Shape s, int lda, int ldb, int row_step) {
	int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * row_step;
	if (j >= s.n) return;
	double sum = 0, size = 0;
	for (int k = 0; k < s.k; k++) {
		double v = (double)a[s.ta ? (size_t)k * lda + i : (size_t)i * lda + k] * b[s.tb ? (size_t)j * ldb + k : (size_t)k * ldb + j];
		sum += v, size += fabs(v);
	}
	double *at = to + 2 * ((size_t)blockIdx.y * s.n + j);
	at[0] = sum, at[1] = size;
}

// Adds up the parts of a sum.
__global__ void add_parts(float *c, const float *parts, size_t size, int count) {
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < size; i += (size_t)gridDim.x * blockDim.x) {
		float s = 0;
		for (int z = 0; z < count; z++) s += parts[z * size + i];
		c[i] = s;
	}
}

// What follows a product that does not derive: C times the derivative of ReLU, and sums of columns over 256 rows of 32 columns a block, eight rows
// of each thread on their way at a time, as in gpu/kernels/activation.cu.
__global__ void derive(float *c, const float *y, float *sums, int m, int n, int ld) {
	__shared__ float all[8][32];
	int j = blockIdx.x * 32 + 2 * threadIdx.x, first = blockIdx.y * 256 + threadIdx.y;
	float2 sum = {0, 0};
	for (int i = first; j < n && i < min(m, first + 256); i += 64) {
		float2 d[8], v[8];
#pragma unroll
		for (int q = 0; q < 8; q++)
			if (i + 8 * q < m) d[q] = *(float2 *)(c + (size_t)(i + 8 * q) * ld + j), v[q] = *(const float2 *)(y + (size_t)(i + 8 * q) * ld + j);
#pragma unroll
		for (int q = 0; q < 8; q++)
			if (i + 8 * q < m) {
				d[q] = {v[q].x > 0 ? d[q].x : 0, v[q].y > 0 ? d[q].y : 0};
				sum.x += d[q].x, sum.y += d[q].y;
				*(float2 *)(c + (size_t)(i + 8 * q) * ld + j) = d[q];
			}
	}
	all[threadIdx.y][2 * threadIdx.x] = sum.x, all[threadIdx.y][2 * threadIdx.x + 1] = sum.y;
	__syncthreads();
	if (threadIdx.y < 2 && blockIdx.x * 32 + threadIdx.y * 16 + threadIdx.x < n) {
		float s = 0;
		for (int i = 0; i < 8; i++) s += all[i][threadIdx.y * 16 + threadIdx.x];
		sums[(size_t)blockIdx.y * n + blockIdx.x * 32 + threadIdx.y * 16 + threadIdx.x] = s;
	}
}

__global__ void add_sums(float *to, const float *sums, int n, int rows) {
	int j = blockIdx.x * blockDim.x + threadIdx.x;
	float s = 0;
	for (int i = 0; j < n && i < rows; i++) s += sums[(size_t)i * n + j];
	if (j < n) to[j] = s;
}

// Microseconds of a call, in a graph of many.
static double timed(std::function<void()> call) {
	cudaGraph_t graph;
	cudaGraphExec_t made;
	cudaEvent_t begin, end;
	call();
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	for (int i = 0; i < REPEATED; i++) call();
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiateWithFlags(&made, graph, 0));
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	float best = INFINITY;
	for (int i = 0; i < ROUNDS; i++) {
		float ms;
		CHECK(cudaEventRecord(begin, stream));
		CHECK(cudaGraphLaunch(made, stream));
		CHECK(cudaEventRecord(end, stream));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		best = std::min(best, ms);
	}
	CHECK(cudaGraphExecDestroy(made));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	return best * 1000 / REPEATED;
}

// A shape with its strides, which are multiples of 4.
struct Case {
	Shape s;
	int lda, ldb, ldc, row_step, rows;
	std::vector<double> want;

	explicit Case(Shape s) : s(s) {
		auto up = [](int n) { return (n + 3) / 4 * 4; };
		lda = up(s.ta ? s.m : s.k), ldb = up(s.tb ? s.k : s.n), ldc = up(s.n);
		row_step = std::max(1, s.m / (MOST_ROWS - 3));
		rows = (s.m + row_step - 1) / row_step;
		want.resize(2 * (size_t)rows * s.n);
		reference<<<dim3((s.n + 127) / 128, rows), 128, 0, stream>>>(reference_numbers, a, b, s, lda, ldb, row_step);
		CHECK(cudaMemcpyAsync(want.data(), reference_numbers, want.size() * sizeof(double), cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
	}

	// The largest error and the mean one towards zero, in parts of 2^-24 of the sum of sizes.
	void errors(double &most, double &mean) const {
		std::vector<float> got((size_t)rows * s.n);
		CHECK(cudaMemcpy2D(got.data(), sizeof(float) * s.n, c, sizeof(float) * ldc * row_step, sizeof(float) * s.n, rows, cudaMemcpyDeviceToHost));
		most = mean = 0;
		for (size_t i = 0; i < got.size(); i++) {
			double e = (got[i] - want[2 * i]) / want[2 * i + 1] * (1 << 24);
			most = std::max(most, std::isfinite(e) ? fabs(e) : INFINITY);
			mean += (want[2 * i] > 0 ? -e : e) / got.size();
		}
	}
};

static void by_cublas(const Case &k, cublasComputeType_t compute) {
	const Shape &s = k.s;
	float one = 1, zero = 0;
	CHECK(cublasGemmEx(blas, s.tb ? CUBLAS_OP_T : CUBLAS_OP_N, s.ta ? CUBLAS_OP_T : CUBLAS_OP_N, s.n, s.m, s.k, &one, (const void *)b, CUDA_R_32F, k.ldb,
		(const void *)a, CUDA_R_32F, k.lda, &zero, (void *)c, CUDA_R_32F, k.ldc, compute, CUBLAS_GEMM_DEFAULT));
}

static void derived(const Case &k) {
	int chunks = (k.s.m + 255) / 256;
	derive<<<dim3((k.s.n + 31) / 32, chunks), dim3(16, 8), 0, stream>>>(c, y, sums, k.s.m, k.s.n, k.ldc);
	add_sums<<<(k.s.n + 255) / 256, 256, 0, stream>>>(bias_gradient, sums, k.s.n, chunks);
}

template <int PRODUCTS, int BM, int BN, int WM, int WN, int BLOCKS, bool TA, bool TB> static void launch(const Case &k, int count, bool derives) {
	const Shape &s = k.s;
	const int stages = 4, bytes = stages * (BM + BN) * BK * (int)sizeof(float);
	auto f = product<PRODUCTS, BM, BN, WM, WN, TA, TB, stages, BLOCKS>;
	CHECK(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
	int each = ((s.k + count - 1) / count + BK - 1) / BK * BK;
	count = (s.k + each - 1) / each;
	Params p = {a, b, count > 1 ? parts : c, s.m, s.n, s.k, k.lda, k.ldb, k.ldc, each, derives ? y : nullptr, sums};
	f<<<dim3((s.n + BN - 1) / BN, (s.m + BM - 1) / BM, count), (BM / WM) * (BN / WN) * 32, bytes, stream>>>(p);
	if (count > 1) add_parts<<<2 * multiprocessors, 256, 0, stream>>>(c, parts, (size_t)s.m * k.ldc, count);
	if (derives) add_sums<<<(s.n + 255) / 256, 256, 0, stream>>>(bias_gradient, sums, s.n, (s.m + WM - 1) / WM);
}

template <int PRODUCTS, int BM, int BN, int WM, int WN, int BLOCKS> static void by_us(const Case &k, int count, bool derives) {
	if (k.s.ta) launch<PRODUCTS, BM, BN, WM, WN, BLOCKS, true, false>(k, count, derives);
	else if (k.s.tb) launch<PRODUCTS, BM, BN, WM, WN, BLOCKS, false, true>(k, count, derives);
	else launch<PRODUCTS, BM, BN, WM, WN, BLOCKS, false, false>(k, count, derives);
}

struct Form {
	const char *name;
	int products, bm, bn, blocks;
	void (*run)(const Case &, int count, bool derives);
};

static const Form forms[] = {
	{"3: 128x128, 64x64", 3, 128, 128, 2, by_us<3, 128, 128, 64, 64, 2>},
	{"3: 128x128, 64x32", 3, 128, 128, 1, by_us<3, 128, 128, 64, 32, 1>},
	{"3: 64x128, 32x64", 3, 64, 128, 3, by_us<3, 64, 128, 32, 64, 3>},
	{"3: 64x64, 32x32", 3, 64, 64, 4, by_us<3, 64, 64, 32, 32, 4>},
	{"1: 128x128, 64x32", 1, 128, 128, 2, by_us<1, 128, 128, 64, 32, 2>},
	{"1: 128x64, 64x32", 1, 128, 64, 3, by_us<1, 128, 64, 64, 32, 3>},
	{"1: 64x64, 32x32", 1, 64, 64, 4, by_us<1, 64, 64, 32, 32, 4>},
};

// Microseconds of the best number of parts, which only gradients of weights have.
static double best_of(const Form &f, const Case &k, bool derives) {
	double best = INFINITY;
	int tiles = ((k.s.m + f.bm - 1) / f.bm) * ((k.s.n + f.bn - 1) / f.bn);
	for (int count = 1; count == 1 || k.s.ta && count <= 128 && k.s.k / count >= 64 && tiles * count <= 3 * multiprocessors * f.blocks; count *= 2)
		if ((size_t)count * k.s.m * k.ldc <= PARTS_NUMBERS) best = std::min(best, timed([&] { f.run(k, count, derives); }));
	return best;
}

// A line of the table: microseconds, and the errors. Returns microseconds.
static std::vector<double> compare(Shape s, bool derives) {
	Case k(s);
	std::vector<double> all;
	printf("| %s%s | %d | %d | %d |", s.ta ? "TN" : s.tb ? "NT" : "NN", derives ? ", derived" : "", s.m, s.n, s.k);
	auto say = [&](double us) {
		double most, mean;
		k.errors(most, mean);
		all.push_back(us);
		if (derives) printf(" %.1f |", us);
		else printf(" %.1f (%.1f, %.1f) |", us, most, mean);
	};
	auto poison = [&] { CHECK(cudaMemsetAsync(c, 0xff, (size_t)s.m * k.ldc * sizeof(float), stream)); };
	for (auto compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32}) {
		poison();
		say(timed([&] {
			by_cublas(k, compute);
			if (derives) derived(k);
		}));
	}
	for (const Form &f : forms) {
		poison();
		say(best_of(f, k, derives));
	}
	printf("\n");
	CHECK(cudaGetLastError());
	fflush(stdout);
	return all;
}

int main() {
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cublasCreate(&blas));
	CHECK(cublasSetStream(blas, stream));
	void *workspace;
	CHECK(cudaMalloc(&workspace, 32 << 20));
	CHECK(cublasSetWorkspace(blas, workspace, 32 << 20));
	CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
	unsigned seed = 0;
	for (float **p : {&a, &b, &c, &y}) {
		CHECK(cudaMalloc(p, MOST * sizeof(float)));
		fill<<<512, 256, 0, stream>>>(*p, MOST, ++seed);
	}
	CHECK(cudaMalloc(&parts, PARTS_NUMBERS * sizeof(float)));
	CHECK(cudaMalloc(&sums, MOST / 32 * sizeof(float)));
	CHECK(cudaMalloc(&bias_gradient, 512 * sizeof(float)));
	CHECK(cudaMalloc(&reference_numbers, 2 * MOST_ROWS * 512 * sizeof(double)));
	printf("Microseconds (largest error, mean error towards zero, in 2^-24 of the sum of sizes)\n\n| product | M | N | K | cuBLAS, float32 | tf32 |");
	for (const Form &f : forms) printf(" %s |", f.name);
	printf("\n|%s\n", " --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
	const int layers[][2] = {{13, 512}, {512, 256}, {256, 64}, {64, 16}, {367, 512}, {512, 256}};
	for (int batch : {4096, 16384, 65536}) {
		std::vector<double> sum(2 + sizeof forms / sizeof forms[0]);
		double best[4] = {};
		auto add = [&](std::vector<double> us, bool counts) {
			double least[4] = {INFINITY, us[1], INFINITY, us[0]};
			for (size_t i = 0; i < us.size() && counts; i++) sum[i] += us[i];
			for (size_t i = 2; i < us.size(); i++) least[forms[i - 2].products] = std::min(least[forms[i - 2].products], us[i]);
			for (int p : {1, 3}) best[p] += counts ? least[p] : 0;
		};
		for (auto &l : layers) {
			add(compare({batch, l[1], l[0], false, false}, false), true);
			if (l[0] != 13) {
				bool relu = l[0] != 367; // what is below is a layer, not interactions
				add(compare({batch, l[0], l[1], false, true}, false), !relu);
				if (relu) add(compare({batch, l[0], l[1], false, true}, true), true);
			}
			add(compare({l[0], l[1], batch, true, false}, false), true);
		}
		printf("| all of a step | %d | | |", batch);
		for (double us : sum) printf(" %.1f |", us);
		printf("\n\nThe best of each for %d examples: %.1f by one product in TF32 or cuBLAS, %.1f by three or cuBLAS.\n\n", batch, best[1], best[3]);
	}
}
