// Rows of the sparse table: see table.go.
#pragma once

#include "aibox.h"

// The numbers of Format.
enum { FLOAT32, FLOAT16, BFLOAT16 };

// How many values a word has, and how many words so many values take.
DEVICE int per_word(int format) { return format == FLOAT32 ? 1 : 2; }
DEVICE int value_words(int values, int format) { return format == FLOAT32 ? values : (values + 1) / 2; }

// The row of the table that is row i of the mini-batch.
template <class T> DEVICE T *table_row(T *rows, const int *index, unsigned i, int words) { return rows + (size_t)index[i] * words; }

// What the values of a row are multiplied by: see decay.Factors.Numbers. The first value has a pair of its own.
DEVICE float decayed(const float *factors, int k, float v) {
	float less = factors[k ? 2 : 0], factor = factors[k ? 3 : 1];
	return less != 0 ? v + v * less : factor != 1 ? v * factor : v;
}

// Occurrences of a row are added up in pieces of so many, and then the pieces: see kernel.SumPiece. Of a row that begins at
// occurrence s of the mini-batch, piece k, if it is whole, has slot s / PIECE + k of an array. No other piece has it,
// since the next row begins as many slots later, at least, as this one has whole pieces.
enum { PIECE = 128 };

// The whole piece in a slot, which need not exist.
struct WholePiece {
	int begin; // its first occurrence
	bool outside;
	__device__ WholePiece(int slot, const int *starts, int rows) {
		// It has the last occurrence whose number divided by PIECE is the slot. That is one of the last row that begins up to there.
		int last = (slot + 1) * PIECE - 1, row = 0, behind = rows;
		while (behind - row > 1) {
			int middle = (row + behind) / 2;
			if (starts[middle] <= last) {
				row = middle;
			} else {
				behind = middle;
			}
		}
		int k = slot - starts[row] / PIECE;
		begin = starts[row] + k * PIECE;
		outside = k < 0 || begin + PIECE > starts[row + 1];
	}
};

template <int N, class Ask, class Add> DEVICE void add_next(int &p, Ask &ask, Add &add) {
	decltype(ask(p)) asked[N];
	for (int q = 0; q < N; q++) {
		asked[q] = ask(p + q);
	}
	for (int q = 0; q < N; q++) {
		add(asked[q]);
	}
	p += N;
}

// Adds up what is asked for at [p, end), in order. Many are asked for before the first of them is added: a chain would
// otherwise wait for memory at each of its links.
template <class Ask, class Add> DEVICE void add_up(int p, int end, Ask ask, Add add) {
	while (end - p >= 16) {
		add_next<16>(p, ask, add);
	}
	if (end - p >= 8) {
		add_next<8>(p, ask, add);
	}
	if (end - p >= 4) {
		add_next<4>(p, ask, add);
	}
	if (end - p >= 2) {
		add_next<2>(p, ask, add);
	}
	if (end - p >= 1) {
		add_next<1>(p, ask, add);
	}
}
