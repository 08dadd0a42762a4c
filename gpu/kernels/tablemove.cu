#include "aibox.h"

// A block has words in dimension X and rows in dimension Y, so that adjacent threads move adjacent
// words, without a division. Words are moved as integers, since they need not be floats.

// The row that this thread works on.
DEVICE unsigned moved_row() { return blockIdx.x * blockDim.y + threadIdx.y; }

KERNEL take_rows(unsigned *__restrict__ to, const unsigned *__restrict__ rows, const int *index, int n, int words) {
	unsigned i = moved_row();
	if (i >= (unsigned)n) {
		return;
	}
	const unsigned *row = rows + (size_t)index[i] * words;
	for (int j = threadIdx.x; j < words; j += blockDim.x) {
		to[(size_t)i * words + j] = row[j];
	}
}

KERNEL put_rows(unsigned *__restrict__ rows, const unsigned *__restrict__ from, const int *index, int n, int words) {
	unsigned i = moved_row();
	if (i >= (unsigned)n) {
		return;
	}
	unsigned *row = rows + (size_t)index[i] * words;
	for (int j = threadIdx.x; j < words; j += blockDim.x) {
		row[j] = from[(size_t)i * words + j];
	}
}
