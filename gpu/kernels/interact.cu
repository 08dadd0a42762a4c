#include "activation.h"
#include "bf16.h"

// A kernel whose threads need many registers: a multiprocessor has room for the given number of
// blocks of 128 threads.
#define TILE_KERNEL(blocks) extern "C" __global__ void __launch_bounds__(128, blocks)

// A block works on blockDim.y examples, with blockDim.x threads each. The threads first copy the
// inputs to shared memory: size elements per example, or 0 if they do not fit. Then each thread
// computes a tile of the results at a time, so that each number that it reads is used in several
// sums.

DEVICE float4 four(const float *x) { return *(const float4 *)x; }

DEVICE unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

// The distance of vectors in shared memory: dim rounded up to a multiple of 4.
DEVICE unsigned spaced(unsigned dim) { return (dim + 3) / 4 * 4; }

// Copies the vectors of an example to shared memory: elements 4k to 4k+3 of vector v to the float4
// with number place(v, k).
template <int TURN, class Place> DEVICE void copy_vectors(float *to, const float *x, unsigned vectors, unsigned dim, Place place) {
	// The loads of a turn overlap. Surplus ones copy the last elements again.
	unsigned n = vectors * dim, last = n - 1;
	if (dim % 4 != 0 || (size_t)x % 16 != 0) {
		enum { FEWER = 4 };
		for (unsigned k = threadIdx.x; k < n; k += FEWER * blockDim.x) {
			float some[FEWER];
			for (unsigned u = 0; u < FEWER; u++) {
				some[u] = x[least(k + u * blockDim.x, last)];
			}
			for (unsigned u = 0; u < FEWER; u++) {
				unsigned at = least(k + u * blockDim.x, last), v = at / dim, d = at - v * dim;
				to[4 * place(v, d / 4) + d % 4] = some[u];
			}
		}
		return;
	}
	// Four elements at a time.
	n /= 4, last /= 4;
	unsigned inverse = 0xffffffff / dim + 1; // 2^32 / dim; exact enough for the size of shared memory
	for (unsigned k = threadIdx.x; k < n; k += TURN * blockDim.x) {
		float4 some[TURN];
		for (unsigned u = 0; u < TURN; u++) {
			some[u] = ((const float4 *)x)[least(k + u * blockDim.x, last)];
		}
		for (unsigned u = 0; u < TURN; u++) {
			unsigned at = least(k + u * blockDim.x, last), v = (unsigned long long)at * inverse >> 30;
			((float4 *)to)[place(v, at - v * (dim / 4))] = some[u];
		}
	}
}

// Writes the 16 bytes of results at y, from x in shared memory.
DEVICE void put_line(float *y, const float *x) { *(float4 *)y = four(x); }
DEVICE void put_line(unsigned short *y, const float *x) {
	float4 a = four(x), b = four(x + 4);
	*(float4 *)y = {bf16_pair(a.x, a.y), bf16_pair(a.z, a.w), bf16_pair(b.x, b.y), bf16_pair(b.z, b.w)};
}

// Writes n results at y, from x in shared memory.
template <class Y> DEVICE void put_row(Y *y, const float *x, unsigned n) {
	enum { LINE = 16 / sizeof(Y) };
	unsigned done = (size_t)y % 16 == 0 ? n / LINE * LINE : 0;
	for (unsigned k = LINE * threadIdx.x; k < done; k += LINE * blockDim.x) {
		put_line(y + k, x + k);
	}
	for (unsigned k = done + threadIdx.x; k < n; k += blockDim.x) {
		put(y + k, x[k]);
	}
}

// A tile is the dot products of SIDE vectors with SIDE others, which a thread computes at a time. It
// reads two elements of each of these vectors for 2·SIDE² multiply-adds. With 7, tiles waste little on
// the 27 vectors of 26 fields and a dense part.
enum { SIDE = 7 };

struct Tile {
	unsigned v0, w0; // the products of vectors v0, … with vectors w0, …; w0 <= v0
	float sum[SIDE][SIDE];

	// x has the vectors as interact_rows copies them. Results for vectors behind the last are
	// garbage.
	DEVICE void multiply(const float *x, unsigned dim, unsigned distance) {
		for (int i = 0; i < SIDE; i++) {
			for (int j = 0; j < SIDE; j++) {
				sum[i][j] = 0;
			}
		}
		const float *a = x + 4 * v0, *b = x + 4 * w0;
		unsigned left = dim;
		// Unrolling the loops over elements would take more registers.
#pragma unroll 1
		for (; left >= 4; left -= 4, a += 4 * distance, b += 4 * distance) {
#pragma unroll
			for (int h = 0; h < 4; h += 2) {
				float2 e[SIDE];
				for (int j = 0; j < SIDE; j++) {
					e[j] = *(const float2 *)(b + 4 * j + h);
				}
				for (int i = 0; i < SIDE; i++) {
					float2 c = *(const float2 *)(a + 4 * i + h);
					for (int j = 0; j < SIDE; j++) {
						sum[i][j] = fmaf(c.y, e[j].y, fmaf(c.x, e[j].x, sum[i][j]));
					}
				}
			}
		}
#pragma unroll 1
		for (; left > 0; left--, a++, b++) {
			for (int i = 0; i < SIDE; i++) {
				for (int j = 0; j < SIDE; j++) {
					sum[i][j] = fmaf(a[4 * i], b[4 * j], sum[i][j]);
				}
			}
		}
	}

	template <class Y> DEVICE void put_all(Y *y, unsigned vectors) const {
		bool below = v0 > w0;
#pragma unroll
		for (unsigned i = 0; i < SIDE; i++) {
			unsigned v = v0 + i;
			Y *row = y + v * (v - 1) / 2 + w0;
#pragma unroll
			for (unsigned j = 0; j < SIDE; j++) {
				if (v < vectors && (j < i || below)) {
					put(row + j, sum[i][j]);
				}
			}
		}
	}
};

// The tile with a number. Tiles form a triangle, whose row r has r + 1 of them.
DEVICE Tile tile_of(unsigned number) {
	Tile t;
	for (t.v0 = 0, t.w0 = number; t.w0 > t.v0; t.v0++) {
		t.w0 -= t.v0 + 1;
	}
	t.v0 *= SIDE, t.w0 *= SIDE;
	return t;
}

// The products of an example's vectors without shared memory, of one vector with SIDE others at a
// time.
template <class Y> DEVICE void multiply_far(Y *y, const float *x, unsigned vectors, unsigned dim, unsigned sides) {
	for (unsigned k = threadIdx.x; k < vectors * sides; k += blockDim.x) {
		unsigned v = k / sides, w0 = k % sides * SIDE;
		if (w0 >= v) {
			continue;
		}
		float sum[SIDE] = {};
		for (unsigned d = 0; d < dim; d++) {
			float c = x[v * dim + d];
			for (unsigned j = 0; j < SIDE; j++) {
				sum[j] = fmaf(c, x[least(w0 + j, v) * dim + d], sum[j]);
			}
		}
		for (unsigned j = 0; j < SIDE && w0 + j < v; j++) {
			put(y + v * (v - 1) / 2 + w0 + j, sum[j]);
		}
	}
}

// Shared memory first has the vectors of an example: elements 4k to 4k+3 of all vectors from float4
// number k·distance on. A thread computes one tile. Then shared memory has the products in the same
// place, with zeros behind them up to columns, and they are written to y in one piece.
template <class Y> DEVICE void interact_rows(Y *__restrict__ y, int ldy, const float *__restrict__ x, int ldx, int rows,
	int vectors, int dim, int distance, int size, unsigned columns, float *shared) {
	int i = blockIdx.x * blockDim.y + threadIdx.y;
	bool inside = i < rows;
	const float *row = &at(x, ldx, i, 0);
	Y *out = &at(y, ldy, i, 0);
	unsigned pairs = vectors * (vectors - 1) / 2, sides = (vectors + SIDE - 1) / SIDE, tiles = sides * (sides + 1) / 2;
	if (size == 0) {
		if (inside) {
			multiply_far(out, row, vectors, dim, sides);
		}
		for (unsigned p = pairs + threadIdx.x; inside && p < columns; p += blockDim.x) {
			put(out + p, 0);
		}
		return;
	}
	float *copied = shared + threadIdx.y * size;
	if (inside) {
		copy_vectors<12>(copied, row, vectors, dim, [=](unsigned v, unsigned k) { return k * distance + v; });
	}
	__syncthreads();
	Tile tile = tile_of(threadIdx.x);
	bool needed = inside && threadIdx.x < tiles;
	if (needed) {
		tile.multiply(copied, dim, distance);
	}
	__syncthreads();
	if (needed) {
		tile.put_all(copied, vectors);
	}
	for (unsigned p = pairs + threadIdx.x; inside && p < columns; p += blockDim.x) {
		copied[p] = 0;
	}
	__syncthreads();
	if (inside) {
		put_row(out, copied, columns);
	}
}

TILE_KERNEL(5) interact(float *__restrict__ y, int ldy, const float *__restrict__ x, int ldx, int rows, int vectors,
	int dim, int distance, int size) {
	extern __shared__ __align__(16) float shared[];
	interact_rows(y, ldy, x, ldx, rows, vectors, dim, distance, size, vectors * (vectors - 1) / 2, shared);
}

TILE_KERNEL(5) interact_bf16(unsigned short *__restrict__ y, int ldy, const float *__restrict__ x, int ldx, int rows, int vectors,
	int dim, int distance, int size, int columns) {
	extern __shared__ __align__(16) float shared[];
	interact_rows(y, ldy, x, ldx, rows, vectors, dim, distance, size, columns, shared);
}

// Copies the gradients of pairs to a symmetric matrix in shared memory for each example; these are
// size elements apart. The gradient of vectors v and w goes to row v, column w, and to row w,
// column v; the diagonal is zero. All threads of the block work on all of its examples, so that a
// thread finds the pair of a place in dy once for all examples.
DEVICE void copy_gradients(float *to, int size, unsigned distance, const float *dy, int lddy, int examples,
	unsigned vectors) {
	enum { TURN = 3, MOST = 4 }; // the loads of TURN pairs of at most MOST examples overlap
	unsigned n = vectors * (vectors - 1) / 2, threads = blockDim.x * blockDim.y;
	unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
	unsigned v = 1, w = 0, was = 0; // vectors v and w are the pair at place was
	for (unsigned k = thread; k < n; k += TURN * threads) {
		float some[TURN][MOST] = {};
		for (unsigned u = 0; u < TURN; u++) {
			const float *from = dy + least(k + u * threads, n - 1);
			for (int e = 0; e < MOST; e++, from += lddy) {
				if (e < examples) {
					some[u][e] = *from;
				}
			}
		}
		for (unsigned u = 0; u < TURN; u++) {
			unsigned at = least(k + u * threads, n - 1);
			for (w += at - was, was = at; w >= v; v++) {
				w -= v;
			}
			float *row = to + v * distance + w, *column = to + w * distance + v;
			for (int e = 0; e < MOST; e++, row += size, column += size) {
				if (e < examples) {
					*row = *column = some[u][e];
				}
			}
		}
	}
	for (int e = 0; e < examples; e++, to += size) {
		for (unsigned k = thread; k < vectors; k += threads) {
			to[k * distance + k] = 0;
		}
	}
}

// A parameter First says how the gradients of the first First::VECTORS vectors are processed. Those
// of the other vectors are written to dx unchanged.

// No vector is special.
struct LikeOthers {
	enum { VECTORS = 0 };
	DEVICE float more(unsigned) const { return 0; }
	DEVICE void put(const float *, unsigned, float, float) const {}
};

// The first vector is the result of an activation, and others is another gradient of it, which is
// added. dz is the gradient of the activation's input; half is the same in bfloat16, or null.
struct Derived {
	enum { VECTORS = 1 };
	const float *others;
	float *dz;
	unsigned short *half;
	int a;
	DEVICE float more(unsigned d) const { return others[d]; }
	DEVICE void put(const float *x, unsigned d, float more, float sum) const {
		float g = derived(a, x[d], more + sum);
		dz[d] = g;
		if (half) {
			half[d] = bf16_bits(g);
		}
	}
};

// Element d of the gradient of vector v is the sum, over all vectors w in order, of the gradient of
// pair (v, w) times element d of w. A tile is four elements of eight vectors; its surplus elements
// are computed and dropped. x and g are in shared memory.
template <class First> DEVICE void mix_vectors(float *dx, const float *x, const float *g, unsigned distance, unsigned vectors,
	unsigned dim, const First &first) {
	bool aligned = dim % 4 == 0 && (size_t)dx % 16 == 0;
	unsigned fours = (dim + 3) / 4, eights = (vectors + 7) / 8;
	for (unsigned tile = threadIdx.x; tile < (eights + 1) / 2 * 2 * fours; tile += blockDim.x) {
		// Of adjacent tiles, two read the same elements of x, and two the same of g: shared memory
		// broadcasts them.
		unsigned v0 = 8 * (tile / (2 * fours) * 2 + tile % 2), d0 = 4 * (tile / 2 % fours);
		if (v0 >= vectors) {
			continue;
		}
		float more[4] = {}; // loaded ahead of its use
		for (unsigned d = 0; (int)v0 < First::VECTORS && d < 4; d++) {
			more[d] = first.more(least(d0 + d, dim - 1));
		}
		float sum[8][4] = {};
		const float *a = x + d0, *b = g + v0;
		for (unsigned w = 0; w < vectors; w++, a += spaced(dim), b += distance) {
			float4 e = four(a);
			for (int h = 0; h < 8; h += 4) {
				float4 c = four(b + h);
				float by[4] = {c.x, c.y, c.z, c.w};
				for (int i = 0; i < 4; i++) {
					float *s = sum[h + i];
					s[0] = fmaf(by[i], e.x, s[0]);
					s[1] = fmaf(by[i], e.y, s[1]);
					s[2] = fmaf(by[i], e.z, s[2]);
					s[3] = fmaf(by[i], e.w, s[3]);
				}
			}
		}
#pragma unroll
		for (int i = 0; i < 8; i++) {
			int v = v0 + i;
			float *to = dx + (v - First::VECTORS) * (int)dim + d0, *s = sum[i];
			if (i < First::VECTORS && v < First::VECTORS) {
				for (unsigned d = 0; d < 4; d++) {
					if (d0 + d < dim) {
						first.put(x, d0 + d, more[d], s[d]);
					}
				}
			} else if (v < (int)vectors && aligned) {
				*(float4 *)to = {s[0], s[1], s[2], s[3]};
			} else if (v < (int)vectors) {
				for (unsigned d = 0; d < 4; d++) {
					if (d0 + d < dim) {
						to[d] = s[d];
					}
				}
			}
		}
	}
}

// Copies n elements to shared memory, and calls meanwhile while the first of them are loaded.
template <class Meanwhile> DEVICE void copy_row(float *to, const float *x, unsigned n, Meanwhile meanwhile) {
	enum { TURN = 6 }; // as in copy_vectors
	unsigned fours = (size_t)x % 16 == 0 ? n / 4 : 0, k = threadIdx.x, rest = 4 * fours + threadIdx.x;
	float4 some[TURN];
	float one = rest < n ? x[rest] : 0;
	auto ask = [&] {
		for (unsigned u = 0; u < TURN; u++) {
			some[u] = four(x + 4 * least(k + u * blockDim.x, fours - 1));
		}
	};
	auto put = [&] {
		for (unsigned u = 0; u < TURN; u++) {
			*(float4 *)(to + 4 * least(k + u * blockDim.x, fours - 1)) = some[u];
		}
	};
	if (fours > 0) {
		ask();
	}
	meanwhile();
	if (fours > 0) {
		put();
	}
	for (k += TURN * blockDim.x; k < fours; k += TURN * blockDim.x) {
		ask();
		put();
	}
	if (rest < n) {
		to[rest] = one;
	}
	for (rest += blockDim.x; rest < n; rest += blockDim.x) {
		to[rest] = x[rest];
	}
}

// The most vectors that fit the registers of a thread: interactFew in Go.
enum { FEW = 28 };

// The sums of mix_vectors for at most FEW vectors. Each thread has one element of all vectors of an
// example, and its sums, so it reads each gradient once for both vectors of the pair. Going through
// the pairs in order adds the terms of each sum in the order of the vectors. g is shared memory for
// the gradients and four more elements.
template <class First> DEVICE void mix_few(float *dx, const float *row, const float *dy, bool inside, unsigned vectors, unsigned dim, float *g,
	const First &first) {
	unsigned d = threadIdx.x;
	float x[FEW], sum[FEW], more = 0;
	if (inside) {
		copy_row(g, dy, vectors * (vectors - 1) / 2, [&] {
			const float *from = row + d;
#pragma unroll
			for (unsigned v = 0; v < FEW; v++, from += dim) {
				if (v < vectors) {
					x[v] = *from;
				}
			}
			more = first.more(d);
		});
	}
	__syncthreads();
	if (!inside) {
		return;
	}
	float4 some = {}, next = four(g); // loaded ahead of its use
#pragma unroll
	for (unsigned v = 0; v < FEW; v++) {
		if (v >= vectors) {
			break;
		}
		sum[v] = 0;
#pragma unroll
		for (unsigned w = 0; w < v; w++) {
			unsigned p = v * (v - 1) / 2 + w;
			if (p % 4 == 0) {
				some = next;
				next = four(g + p + 4);
			}
			float by = p % 4 == 0 ? some.x : p % 4 == 1 ? some.y : p % 4 == 2 ? some.z : some.w;
			sum[v] = fmaf(by, x[w], sum[v]);
			sum[w] = fmaf(by, x[v], sum[w]);
		}
		sum[v] = fmaf(0, x[v], sum[v]);
	}
	if (First::VECTORS > 0) {
		first.put(row, d, more, sum[0]);
	}
	float *to = dx + d;
#pragma unroll
	for (unsigned v = First::VECTORS; v < FEW; v++, to += dim) {
		if (v < vectors) {
			*to = sum[v];
		}
	}
}

// The sums of mix_vectors without shared memory, one element at a time.
template <class First> DEVICE void mix_far(float *dx, const float *x, const float *dy, int vectors, int dim, const First &first) {
	for (int k = threadIdx.x; k < vectors * dim; k += blockDim.x) {
		int v = k / dim, d = k % dim;
		float sum = 0;
		for (int w = 0; w < vectors; w++) {
			float g = 0;
			if (w != v) {
				g = w < v ? dy[v * (v - 1) / 2 + w] : dy[w * (w - 1) / 2 + v];
			}
			sum = fmaf(g, x[w * dim + d], sum);
		}
		if (v < First::VECTORS) {
			first.put(x, d, first.more(d), sum);
		} else {
			dx[k - First::VECTORS * dim] = sum;
		}
	}
}

// Shared memory has the matrix of an example's gradients, with rows distance elements apart, and
// then its vectors; if distance is 0, it has only a copy of the row of dy. dx, row and first belong
// to the example of this thread.
template <class First> DEVICE void interact_grads(float *dx, const float *row, const float *__restrict__ dy, int lddy, int rows, int vectors,
	int dim, int distance, int size, float *shared, const First &first) {
	int begin = blockIdx.x * blockDim.y, i = begin + threadIdx.y;
	bool inside = i < rows;
	if (size == 0) {
		if (inside) {
			mix_far(dx, row, &at(dy, lddy, i, 0), vectors, dim, first);
		}
		return;
	}
	float *square = shared + threadIdx.y * size, *copied = square + vectors * distance;
	if (distance == 0) {
		mix_few(dx, row, &at(dy, lddy, i, 0), inside, vectors, dim, square, first);
		return;
	}
	if (inside) {
		copy_vectors<4>(copied, row, vectors, dim, [=](unsigned v, unsigned k) { return v * (spaced(dim) / 4) + k; });
	}
	copy_gradients(shared, size, distance, &at(dy, lddy, begin, 0), lddy, least(blockDim.y, rows - begin), vectors);
	__syncthreads();
	if (inside) {
		mix_vectors(dx, copied, square, distance, vectors, dim, first);
	}
}

TILE_KERNEL(5) interact_grad(float *__restrict__ dx, int lddx, const float *__restrict__ x, int ldx,
	const float *__restrict__ dy, int lddy, int rows, int vectors, int dim, int distance, int size) {
	extern __shared__ __align__(16) float shared[];
	int i = blockIdx.x * blockDim.y + threadIdx.y;
	interact_grads(&at(dx, lddx, i, 0), &at(x, ldx, i, 0), dy, lddy, rows, vectors, dim, distance, size, shared, LikeOthers());
}

// ldhalf is 0 if half is not needed. half has columns columns; those behind the first vector become
// 0.
TILE_KERNEL(5) interact_grad_first(float *__restrict__ dx, int lddx, float *__restrict__ dz, int lddz, unsigned short *__restrict__ half, int ldhalf,
	const float *__restrict__ x, int ldx, const float *__restrict__ dy, int lddy, const float *__restrict__ others, int ldothers, int rows,
	int vectors, int dim, int distance, int size, int columns, int a) {
	extern __shared__ __align__(16) float shared[];
	int i = blockIdx.x * blockDim.y + threadIdx.y;
	Derived first{&at(others, ldothers, i, 0), &at(dz, lddz, i, 0), ldhalf ? &at(half, ldhalf, i, 0) : nullptr, a};
	for (int d = dim + threadIdx.x; i < rows && d < columns; d += blockDim.x) {
		first.half[d] = 0;
	}
	interact_grads(&at(dx, lddx, i, 0), &at(x, ldx, i, 0), dy, lddy, rows, vectors, dim, distance, size, shared, first);
}
