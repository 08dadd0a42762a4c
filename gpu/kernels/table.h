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

// How many numbers a thread asks for before it adds up the first of them. The chain of a row that occurs very often would
// otherwise wait for memory at each of its links.
enum { AHEAD = 16 };
