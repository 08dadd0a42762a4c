#include "table.h"

template <int N> DEVICE void pool(float *y, int ldy, float *means, const float *values, const int *index, const int *offsets, int several,
		const float *weights, int weighted, const int *averaged, int averages, int examples, int fields, int width, long long inverse) {
	Element e(examples * fields, width / N);
	if (e.outside) {
		return;
	}
	unsigned bag = e.i, k = e.j * N;
	int lo = several ? offsets[bag] : bag, hi = several ? offsets[bag + 1] : bag + 1;
	float factor = 1;
	Numbers<N> sum = {};
	if (hi - lo == 1 && !weighted) {
		sum = numbers<N>(values + (size_t)index[lo] * width + k);
	} else {
		float total = 0;
		values += k;
		for (int at = lo; at < hi; at++) {
			float weight = weighted ? weights[at] : 1;
			add_product(sum, weight, numbers<N>(values + (size_t)index[at] * width));
			total += weight;
		}
		if (averages && averaged[bag % (unsigned)fields] && hi > lo) {
			factor = total == 0 ? 0 : 1 / total;
			for (int h = 0; h < N; h++) {
				sum.v[h] *= factor;
			}
		}
	}
	unsigned i = divided(bag, inverse), f = bag - i * fields;
	put(&at(y, ldy, i, f * width + k), sum);
	if (averages && k == 0) {
		means[bag] = factor;
	}
}

// several is 0 if each bag has one row. weighted is 1 if there are weights, averages is 1 if some
// fields are averaged. A thread works on at_once columns: 1 or 4.
WAITING_KERNEL table_pool(float *y, int ldy, float *means, const float *values, const int *index, const int *offsets, int several, const float *weights, int weighted,
		const int *averaged, int averages, int examples, int fields, int width, int at_once, long long inverse) {
	if (at_once == 4) {
		pool<4>(y, ldy, means, values, index, offsets, several, weights, weighted, averaged, averages, examples, fields, width, inverse);
	} else {
		pool<1>(y, ldy, means, values, index, offsets, several, weights, weighted, averaged, averages, examples, fields, width, inverse);
	}
}

// The contribution of an occurrence of a row to its gradient: mean · weight · dy, from place on.
struct Term {
	size_t place;
	float mean, weight;
};

struct Occurrences {
	int lddy;
	const int *bags;
	const float *weights;
	int weighted;
	const float *means;
	int averages;
	int fields, width;
	long long inverse; // of fields: see divided

	DEVICE Term term(int p, unsigned bag) const {
		size_t place = (size_t)bag * width + (size_t)divided(bag, inverse) * (lddy - fields * width);
		return {place, averages ? means[bag] : 1, weighted ? weights[p] : 1};
	}
};

// The occurrences of a row are added up in pieces of PIECE, and then the pieces are added up: see
// kernel.SumPiece. If a row begins at occurrence s of the mini-batch, its whole piece k has slot
// s/PIECE + k of an array. Slots are unique: the next row begins at least as many slots later as
// this row has whole pieces.
enum { PIECE = 64 };

// The whole piece in a slot; outside if there is none.
struct WholePiece {
	int begin; // its first occurrence
	bool outside;
	__device__ WholePiece(int slot, const int *starts, int rows) {
		// If there is one, it contains the last occurrence p with p / PIECE == slot, so it belongs to the
		// last row that begins at or before p. The search for that row divides the range by 16 at a
		// time, since 15 independent loads take as long as one. Parts behind the range do not count,
		// since starts[rows] > p.
		int last = (slot + 1) * PIECE - 1, row = 0, behind = rows;
		while (behind - row > 1) {
			int part = (behind - row + 15) / 16, parts = 0;
			for (int q = 1; q < 16; q++) {
				int at = row + q * part;
				parts += starts[at < behind ? at : rows] <= last;
			}
			row += parts * part;
			behind = behind - row < part ? behind : row + part;
		}
		int k = slot - starts[row] / PIECE;
		begin = starts[row] + k * PIECE;
		outside = k < 0 || begin + PIECE > starts[row + 1];
	}
};

// The most pieces that a block works on. In dimension X, each thread has a column.
enum { BLOCK_PIECES = 16 };

KERNEL table_piece_gradients(float *__restrict__ pieces, const float *dy, int lddy, const int *starts, const int *bags, const float *weights,
		int weighted, const float *means, int averages, int slots, int n, int fields, int width, long long inverse) {
	__shared__ Term all[BLOCK_PIECES][PIECE + 1]; // + 1 puts the pieces into different banks
	int slot = blockIdx.x * blockDim.y + threadIdx.y;
	Term *terms = all[threadIdx.y];
	WholePiece piece(slot < slots ? slot : slots - 1, starts, n);
	bool outside = slot >= slots || piece.outside;
	if (!outside) {
		Occurrences occurrences{lddy, bags, weights, weighted, means, averages, fields, width, inverse};
		for (int q = threadIdx.x; q < PIECE; q += blockDim.x) {
			terms[q] = occurrences.term(piece.begin + q, bags[piece.begin + q]);
		}
	}
	__syncthreads();
	for (int k = threadIdx.x; slot < slots && k < width; k += blockDim.x) {
		float sum = 0;
		if (!outside) {
			for (int q = 0; q < PIECE; q++) {
				sum = fmaf(terms[q].mean * terms[q].weight, dy[terms[q].place + k], sum);
			}
		}
		pieces[(size_t)slot * width + k] = sum;
	}
}

template <int N> DEVICE void gradients(float *grads, const float *dy, const int *starts, const Occurrences &occurrences, const float *pieces, int n) {
	int width = occurrences.width;
	Element e(n, width / N);
	if (e.outside) {
		return;
	}
	int lo = starts[e.i], hi = starts[e.i + 1], whole = (hi - lo) / PIECE, k = e.j * N;
	// The loads of the next bags overlap with those of the gradients of the current ones.
	enum { ASKED = 8 };
	unsigned bags[ASKED];
	auto ask = [&](int p) {
		for (int q = 0; q < ASKED; q++) {
			bags[q] = p + q < hi ? occurrences.bags[p + q] : 0;
		}
	};
	ask(lo + whole * PIECE);
	Numbers<N> total = nothing<N>(), rest = {};
	add_up(total, lo / PIECE, lo / PIECE + whole, [&](int slot) { return numbers<N>(pieces + (size_t)slot * width + k); });
	for (int p = lo + whole * PIECE; p < hi; p += ASKED) {
		Numbers<N> asked[ASKED];
		float means[ASKED], weights[ASKED];
		for (int q = 0; q < ASKED; q++) {
			asked[q] = nothing<N>();
			means[q] = weights[q] = 1;
			if (p + q < hi) {
				Term t = occurrences.term(p + q, bags[q]);
				asked[q] = numbers<N>(dy + t.place + k);
				means[q] = t.mean;
				weights[q] = t.weight;
			}
		}
		ask(p + ASKED);
		for (int q = 0; q < ASKED; q++) {
			add_product(rest, means[q] * weights[q], asked[q]);
		}
	}
	if (whole == 0 || lo + whole * PIECE < hi) {
		add_product(total, 1, rest);
	}
	put(grads + (size_t)e.i * width + k, total);
}

// A thread works on at_once columns: 1 or 4.
KERNEL table_gradients(float *grads, const float *dy, int lddy, const int *starts, const int *bags, const float *weights, int weighted,
		const float *means, int averages, const float *pieces, int n, int fields, int width, int at_once, long long inverse) {
	Occurrences occurrences{lddy, bags, weights, weighted, means, averages, fields, width, inverse};
	if (at_once == 4) {
		gradients<4>(grads, dy, starts, occurrences, pieces, n);
	} else {
		gradients<1>(grads, dy, starts, occurrences, pieces, n);
	}
}
