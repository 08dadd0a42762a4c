// A matrix product on tensor cores by mma.sync, from compute capability 8.0 on: C = op(A)·op(B), row by row as gpu.Product has it. Of float32 it is
// the sum of three products in TF32: each number is split into one with 11 bits and a rest, and only the product of two rests, some 2^-22 of the
// whole, is left out. Tensor cores cut off what they add up, so that long sums come out too small; therefore those over BK numbers are made on their
// own, and added up in float32.
//
// A warp computes WM x WN numbers of C, and a block BM x BN of them over K from blockIdx.z*each on. Tiles of BK columns of both sides come
// through shared memory, STAGES - 1 of them ahead.
#pragma once

#include <stdint.h>

#ifdef ON_CPU // check.cu says what these do
#define DEVICE inline
#define MEMBER inline
#else
#define DEVICE static __device__ __forceinline__
#define MEMBER __device__ __forceinline__
extern __shared__ __align__(16) float shared[];

// Begins to copy 16 bytes, of which those behind the first few are zero.
DEVICE void copy16(float *to, const float *from, int bytes) {
	unsigned at = (unsigned)__cvta_generic_to_shared(to);
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

// Ends a group of copies.
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// Waits for all groups but the latest N.
template <int N> DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory"); }

// Adds a product of 16x8 and 8x8 numbers. With g = lane/4 and t = lane%4, a lane has of A those at (g, t), (g+8, t), (g, t+4) and (g+8, t+4), of B
// (t, g) and (t+4, g), and of C (g, 2t), (g, 2t+1), (g+8, 2t) and (g+8, 2t+1).
DEVICE void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Adds v over the lanes with the same t.
DEVICE float sum_of_rows(float v) {
	for (int w = 4; w < 32; w *= 2) v += __shfl_xor_sync(0xffffffff, v, w);
	return v;
}
#endif

enum { BK = 16 };

struct Params {
	const float *a, *b;
	float *c;
	int m, n, k, lda, ldb, ldc; // pointers and strides of A and B are multiples of 4 numbers
	int each;                   // of K for a block; a multiple of BK. Blocks with another blockIdx.z write another C, one behind the other
	// If y is not NULL the product is multiplied by the derivative of ReLU whose result is y, which lies as C does, and sums gets the sums
	// of its columns over the WM rows of each warp, one row of n numbers for each.
	const float *y;
	float *sums;
};

// The nearest number of TF32, and what it lacks, of which the tensor cores take 11 bits.
DEVICE void split(float x, uint32_t &head, uint32_t &rest) {
	head = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
	rest = __float_as_uint(x - __uint_as_float(head));
}

// R rows of A, or columns of B, of which there are n, from first on. ALONG says that K is what lies along a row in memory. In shared memory
// there are BK numbers for each of the R then; else R numbers for each of the BK, in an order in which lanes that read together come to other banks.
template <int R, bool ALONG, int THREADS> struct Tile {
	enum { CHUNKS = ALONG ? BK / 4 : R / 4, EACH = R * 4 / THREADS, MORE = THREADS / CHUNKS };
	static_assert(R * 4 % THREADS == 0 && THREADS % CHUNKS == 0, "threads share a tile equally");
	const float *base, *from; // from: of the first chunk of this thread; the others are MORE rows further on each
	int ld, k, left;          // k of the first; how many there are from its row on

	MEMBER void start(const float *matrix, int stride, int first, int n, int k0) {
		int major = threadIdx.x / CHUNKS, minor = threadIdx.x % CHUNKS * 4;
		base = matrix, ld = stride;
		k = k0 + (ALONG ? minor : major);
		left = n - first - (ALONG ? major : minor);
		from = base + (ALONG ? (size_t)(first + major) * ld + k : (size_t)k * ld + first + minor);
	}

	MEMBER void load(float *to, int end) {
		int major = threadIdx.x / CHUNKS, minor = threadIdx.x % CHUNKS, here = ALONG ? end - k : left;
		int bytes = (here < 0 ? 0 : here < 4 ? here : 4) * 4;
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			int row = major + i * MORE, n = (ALONG ? i * MORE < left : k + i * MORE < end) ? bytes : 0;
			copy16(to + (ALONG ? row * BK + minor * 4 : row * R + (minor ^ 2 * (row >> 2)) * 4), n > 0 ? from + (size_t)(i * MORE) * ld : base, n);
		}
		from += ALONG ? BK : (size_t)BK * ld;
		k += BK;
	}
};

// What a lane has of W rows of a tile: of each eight rows one, and of its BK numbers four. These are not those that mma names, but the same ones
// on both sides, and sums have no order; nor are rows that are not ALONG the same ones, so that they can be read four at a time.
template <int W, int R, bool ALONG> struct Fragments {
	float4 v[W / 8];

	MEMBER void load(const float *tile, int first, int g, int t) {
#pragma unroll
		for (int i = 0; i < W / 8; i++)
			v[i] = *(const float4 *)(ALONG ? tile + (first + 8 * i + g) * BK + 4 * t
						       : tile + (4 * t + i % 4) * R + ((first / 4 + 8 * (i / 4) + g) ^ 2 * t) * 4);
	}

	// Number k, up to 3, of the lane's row of the eight rows h.
	MEMBER float get(int h, int k) const {
		float4 x = v[ALONG ? h : h / 4 * 4 + k];
		int c = ALONG ? k : h % 4;
		return c == 0 ? x.x : c == 1 ? x.y : c == 2 ? x.z : x.w;
	}

	// Where row x of the eight rows h is.
	static MEMBER int row(int h, int x) { return ALONG ? 8 * h + x : 32 * (h / 4) + 4 * x + h % 4; }
};

// Writes what a lane has of C, two or four numbers of a row at a time. A and B say where rows and columns are.
template <int WM, int WN, bool TB, class A, class B> DEVICE void put(const Params &p, const float (&acc)[WM / 16][WN / 8][4], int m0, int n0, int g, int t) {
	enum { TOGETHER = TB ? 1 : 4, SIDES = TB ? 1 : 2, W = TB ? 2 : 4 };
	float *c = p.c + (size_t)blockIdx.z * p.m * p.ldc;
	float sums[WN / 8][2] = {};
#pragma unroll
	for (int r = 0; r < WM / 8; r++) {
		int row = m0 + A::row(r, g);
		if (row >= p.m) continue;
#pragma unroll
		for (int j = 0; j < WN / 8; j += TOGETHER)
#pragma unroll
			for (int x = 0; x < SIDES; x++) {
				int column = n0 + B::row(j, 2 * t + x);
				size_t at = (size_t)row * p.ldc + column;
				bool whole = p.ldc % 4 == 0 && column + W <= p.n;
				float v[W];
#pragma unroll
				for (int q = 0; q < W; q++) {
					int block = TB ? j : j + q, side = TB ? q : x;
					v[q] = acc[r / 2][block][2 * (r % 2) + side];
					if (p.y && column + q < p.n) {
						v[q] = p.y[at + q] > 0 ? v[q] : 0;
						sums[block][side] += v[q];
					}
				}
				if (whole && TB) *(float2 *)(c + at) = float2{v[0], v[1]};
				else if (whole) *(float4 *)(c + at) = float4{v[0], v[1], v[W - 2], v[W - 1]};
#pragma unroll
				for (int q = 0; q < W; q++)
					if (!whole && column + q < p.n) c[at + q] = v[q];
			}
	}
	if (!p.y) return;
#pragma unroll
	for (int j = 0; j < WN / 8; j++)
#pragma unroll
		for (int x = 0; x < 2; x++) {
			float v = sum_of_rows(sums[j][x]);
			int column = n0 + B::row(j, 2 * t + x);
			if (g == 0 && column < p.n && m0 < p.m) p.sums[(size_t)(m0 / WM) * p.n + column] = v;
		}
}

template <int PRODUCTS, int BM, int BN, int WM, int WN, bool TA, bool TB, int STAGES, int BLOCKS> __global__ void
__launch_bounds__((BM / WM) * (BN / WN) * 32, BLOCKS) product(Params p) {
	enum { THREADS = (BM / WM) * (BN / WN) * 32, STAGE = (BM + BN) * BK, TOGETHER = TB ? 1 : 4 };
	typedef Fragments<WM, BM, !TA> FA;
	typedef Fragments<8 * TOGETHER, BN, TB> FB;
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, wm = warp / (BN / WN) * WM, wn = warp % (BN / WN) * WN;
	int begin = blockIdx.z * p.each, end = begin + p.each < p.k ? begin + p.each : p.k;
	Tile<BM, !TA, THREADS> a;
	Tile<BN, TB, THREADS> b;
	a.start(p.a, p.lda, m0, p.m, begin);
	b.start(p.b, p.ldb, n0, p.n, begin);
	auto load = [&](int stage) {
		a.load(shared + stage * STAGE, end);
		b.load(shared + stage * STAGE + BM * BK, end);
		commit_copies();
	};
#pragma unroll
	for (int s = 0; s < STAGES - 1; s++) load(s);
	float acc[WM / 16][WN / 8][4] = {};
	int at = 0, next = STAGES - 1;
	for (int k = begin; k < end; k += BK) {
		wait_copies<STAGES - 2>();
		__syncthreads();
		load(next);
		const float *tile = shared + at * STAGE;
		at = at + 1 == STAGES ? 0 : at + 1;
		next = next + 1 == STAGES ? 0 : next + 1;
		uint32_t ah[WM / 16][2][4], al[WM / 16][2][4];
		FA fa;
		fa.load(tile, wm, g, t);
#pragma unroll
		for (int i = 0; i < WM / 16; i++)
#pragma unroll
			for (int s = 0; s < 2; s++)
#pragma unroll
				for (int q = 0; q < 4; q++) split(fa.get(2 * i + q % 2, 2 * s + q / 2), ah[i][s][q], al[i][s][q]);
#pragma unroll
		for (int j0 = 0; j0 < WN / 8; j0 += TOGETHER) {
			FB fb;
			fb.load(tile + BM * BK, wn + 8 * j0, g, t);
#pragma unroll
			for (int j = 0; j < TOGETHER; j++) {
				float sum[WM / 16][4] = {};
#pragma unroll
				for (int s = 0; s < 2; s++) {
					uint32_t bh[2], bl[2];
					split(fb.get(j, 2 * s), bh[0], bl[0]);
					split(fb.get(j, 2 * s + 1), bh[1], bl[1]);
					if (PRODUCTS == 3) {
#pragma unroll
						for (int i = 0; i < WM / 16; i++) mma(sum[i], al[i][s], bh);
#pragma unroll
						for (int i = 0; i < WM / 16; i++) mma(sum[i], ah[i][s], bl);
#pragma unroll
						for (int i = 0; i < WM / 16; i++) mma(sum[i], ah[i][s], bh);
					} else {
#pragma unroll
						for (int i = 0; i < WM / 16; i++) mma(acc[i][j0 + j], ah[i][s], bh);
					}
				}
				if (PRODUCTS == 3)
#pragma unroll
					for (int i = 0; i < WM / 16; i++)
#pragma unroll
						for (int q = 0; q < 4; q++) acc[i][j0 + j][q] += sum[i][q];
			}
		}
	}
	put<WM, WN, TB, Fragments<WM, BM, !TA>, Fragments<WN, BN, TB>>(p, acc, m0 + wm, n0 + wn, g, t);
}
