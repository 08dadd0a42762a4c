#include "table.h"

// The statistics of a row, behind its values and state.
enum { SHOW, CLICK, SEEN, COUNT, STATISTICS };

// Clicks are counted in blocks of COUNTED occurrences, each by one block of threads.
enum { COUNTED = 256 };

// A prefix sum of labels in two levels. before[p] is the number of clicks among the occurrences
// before p in its block, also for p = n; blocks has the clicks of each block. The occurrences of a
// row are adjacent, so its clicks follow from two elements of before and the blocks between them.
// Sums of zeros and ones are exact, so their order does not matter.
KERNEL table_clicks(float *before, float *blocks, const int *bags, const float *labels, int n, int fields) {
	__shared__ float sums[COUNTED];
	unsigned p = thread_number(), t = threadIdx.x;
	float label = p < (unsigned)n ? labels[(unsigned)bags[p] / fields] : 0, sum = label;
	for (unsigned distance = 1; distance < COUNTED; distance *= 2) {
		sums[t] = sum;
		__syncthreads();
		sum += t >= distance ? sums[t - distance] : 0;
		__syncthreads();
	}
	if (p <= (unsigned)n) {
		before[p] = sum - label;
	}
	if (t == COUNTED - 1) {
		blocks[blockIdx.x] = sum;
	}
}

KERNEL table_collect(const int *flag, float *rows, const int *index, const int *starts, const float *before,
		const float *blocks, int *admitted, long long day, float show_decay, long long least, int n, int words) {
	unsigned i = thread_number();
	if (i >= (unsigned)n) {
		return;
	}
	float *row = table_row(rows, index, i, words) + words - STATISTICS;
	int lo = starts[i], hi = starts[i + 1], stopped = *flag; // these loads overlap
	bool at_once = words % 4 == 0 && (size_t)rows % 16 == 0;
	Numbers<STATISTICS> s;
	if (at_once) {
		s = numbers<STATISTICS>(row);
	} else {
		for (int k = 0; k < STATISTICS; k++) {
			s.v[k] = row[k];
		}
	}
	float show = s.v[SHOW], click = s.v[CLICK];
	unsigned seen = __float_as_uint(s.v[SEEN]), count = __float_as_uint(s.v[COUNT]), today = (unsigned)day;
	if (count > 0 && show_decay != 1 && today > seen) {
		double power = 1, base = show_decay;
		for (unsigned days = today - seen; days > 0; days >>= 1) {
			if (days & 1) {
				power *= base;
			}
			base *= base;
		}
		show = (float)(show * power);
		click = (float)(click * power);
	}
	Numbers<1> clicks = {before[hi] - before[lo]};
	add_up(clicks, lo / COUNTED, hi / COUNTED, [&](int block) { return numbers<1>(blocks + block); });
	unsigned shows = (unsigned)(hi - lo), room = 0xffffffffu - count;
	count += shows < room ? shows : room;
	if (!stopped) {
		s = {{show + (float)shows, click + clicks.v[0], __uint_as_float(today), __uint_as_float(count)}};
		if (at_once) {
			put(row, s);
		} else {
			for (int k = 0; k < STATISTICS; k++) {
				row[k] = s.v[k];
			}
		}
	}
	admitted[i] = count >= (unsigned)least;
}

KERNEL table_admit(const float *rows, const int *index, int *admitted, long long least, int n, int words) {
	unsigned i = thread_number();
	if (i >= (unsigned)n) {
		return;
	}
	unsigned count = __float_as_uint(table_row(rows, index, i, words)[words - STATISTICS + COUNT]);
	admitted[i] = count > 0 && count >= (unsigned)least;
}

// half.FromFloat16
DEVICE float from_float16(unsigned h) {
	unsigned sign = (h & 0x8000) << 16, b = (h & 0x7fff) << 13;
	const unsigned bias = (127 - 15) << 23, least_normal = (127 - 14) << 23;
	if (b >= 0x7c00u << 13) {
		return __uint_as_float(sign | b | 0x7f800000);
	}
	if (b < 1u << 23) {
		return __uint_as_float(sign | __float_as_uint(__uint_as_float(b + least_normal) - __uint_as_float(least_normal)));
	}
	return __uint_as_float(sign | (b + bias));
}

// Value h of a word, as float32.
DEVICE float widened(float word, int h, int format) {
	unsigned part = __float_as_uint(word) >> (16 * h) & 0xffff;
	return format == FLOAT16 ? from_float16(part) : format == BFLOAT16 ? __uint_as_float(part << 16) : word;
}

// Value k of row i of the mini-batch as it is gathered: decayed, if rows decay.
DEVICE float gathered(float value, int k, unsigned i, const float *factors, int decays) {
	return decays ? decayed(factors + 4 * (size_t)i, k, value) : value;
}

// decays is 1 if there are factors. A thread works on at_once words: 1, or 4 if they are float32.
KERNEL table_gather(float *values, const float *rows, const int *index, const int *admitted, const float *factors, int decays,
		int n, int words, int width, int format, int at_once) {
	Element e(n, at_once == 4 ? width / 4 : value_words(width, format));
	if (e.outside) {
		return;
	}
	const float *row = table_row(rows, index, e.i, words);
	float *to = values + (size_t)e.i * width;
	bool used = admitted[e.i];
	if (at_once == 4) {
		int k = e.j * 4;
		Numbers<4> x = numbers<4>(row + k);
		for (int h = 0; h < 4; h++) {
			x.v[h] = used ? gathered(x.v[h], k + h, e.i, factors, decays) : 0;
		}
		put(to + k, x);
		return;
	}
	float word = row[e.j];
	for (int h = 0; h < per_word(format); h++) {
		int k = e.j * per_word(format) + h;
		if (k < width) {
			to[k] = used ? gathered(widened(word, h, format), k, e.i, factors, decays) : 0;
		}
	}
}
