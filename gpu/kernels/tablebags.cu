#include "table.h"

// weighted and averages are 1 if there are weights, and fields that are averaged.
KERNEL table_pool(float *y, int ldy, float *means, const float *values, const int *offsets, const int *index, const float *weights, int weighted,
		const int *averaged, int averages, int examples, int fields, int width) {
	Element e(examples, fields * width);
	if (e.outside) {
		return;
	}
	int f = e.j / width, k = e.j % width;
	size_t bag = (size_t)e.i * fields + f;
	int lo = offsets[bag], hi = offsets[bag + 1];
	float factor = 1, sum = 0;
	if (hi - lo == 1 && !weighted) {
		sum = values[(size_t)index[lo] * width + k];
	} else {
		float total = 0;
		for (int at = lo; at < hi; at++) {
			float v = values[(size_t)index[at] * width + k];
			if (weighted) {
				sum = fmaf(weights[at], v, sum);
				total += weights[at];
			} else {
				sum += v;
			}
		}
		if (averages && averaged[f] && hi > lo) {
			if (!weighted) {
				total = (float)(hi - lo);
			}
			factor = total == 0 ? 0 : 1 / total;
			sum *= factor;
		}
	}
	at(y, ldy, e.i, e.j) = sum;
	if (averages && k == 0) {
		means[bag] = factor;
	}
}

// What occurrences of rows add to the gradients of these.
struct Occurrences {
	const float *dy;
	int lddy;
	const int *bags;
	const float *weights;
	int weighted;
	const float *means;
	int averages;
	int fields, width;

	// The sum over [begin, end) of column k.
	DEVICE float sum(int begin, int end, int k) const {
		struct Term {
			float factor, gradient;
		};
		float sum = 0;
		add_up(begin, end, [&](int p) {
			int bag = bags[p];
			return Term{(averages ? means[bag] : 1) * (weighted ? weights[p] : 1), at(dy, lddy, bag / fields, bag % fields * width + k)};
		}, [&](Term t) { sum = weighted || averages ? fmaf(t.factor, t.gradient, sum) : sum + t.gradient; });
		return sum;
	}
};

KERNEL table_piece_gradients(float *pieces, const float *dy, int lddy, const int *starts, const int *bags, const float *weights, int weighted,
		const float *means, int averages, int slots, int n, int fields, int width) {
	Element e(slots, width);
	if (e.outside) {
		return;
	}
	WholePiece piece(e.i, starts, n);
	Occurrences all{dy, lddy, bags, weights, weighted, means, averages, fields, width};
	pieces[(size_t)e.i * width + e.j] = piece.outside ? 0 : all.sum(piece.begin, piece.begin + PIECE, e.j);
}

KERNEL table_gradients(float *grads, const float *dy, int lddy, const int *starts, const int *bags, const float *weights, int weighted,
		const float *means, int averages, const float *pieces, int n, int fields, int width) {
	Element e(n, width);
	if (e.outside) {
		return;
	}
	int lo = starts[e.i], hi = starts[e.i + 1], whole = (hi - lo) / PIECE;
	float sum = 0;
	add_up(lo / PIECE, lo / PIECE + whole, [&](int slot) { return pieces[(size_t)slot * width + e.j]; }, [&](float piece) { sum += piece; });
	Occurrences all{dy, lddy, bags, weights, weighted, means, averages, fields, width};
	grads[(size_t)e.i * width + e.j] = sum + all.sum(lo + whole * PIECE, hi, e.j);
}
