#include "table.h"

// Behind values and state a row has show, click, day last seen, count.
enum { SHOW, CLICK, SEEN, COUNT, STATISTICS };

// Adds up labels, which are 0 or 1, so that a sum has the same bits in any order.
DEVICE float clicks_of(const float *labels, const int *bags, int fields, int begin, int end) {
	float clicks = 0;
	add_up(begin, end, [&](int p) { return labels[bags[p] / fields]; }, [&](float label) { clicks += label; });
	return clicks;
}

KERNEL table_piece_clicks(float *pieces, const int *starts, const int *bags, const float *labels, int slots, int n, int fields) {
	unsigned slot = thread_number();
	if (slot >= (unsigned)slots) {
		return;
	}
	WholePiece piece(slot, starts, n);
	pieces[slot] = piece.outside ? 0 : clicks_of(labels, bags, fields, piece.begin, piece.begin + PIECE);
}

KERNEL table_collect(const int *flag, float *rows, const int *index, const int *starts, const int *bags, const float *labels,
		const float *pieces, int *admitted, long long day, float show_decay, long long least, int n, int words, int fields) {
	unsigned i = thread_number();
	if (i >= (unsigned)n) {
		return;
	}
	float *s = table_row(rows, index, i, words) + words - STATISTICS;
	float show = s[SHOW], click = s[CLICK];
	unsigned seen = __float_as_uint(s[SEEN]), count = __float_as_uint(s[COUNT]), today = (unsigned)day;
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
	int lo = starts[i], hi = starts[i + 1];
	int whole = (hi - lo) / PIECE;
	float clicks = clicks_of(labels, bags, fields, lo + whole * PIECE, hi);
	add_up(lo / PIECE, lo / PIECE + whole, [&](int slot) { return pieces[slot]; }, [&](float piece) { clicks += piece; });
	unsigned shows = (unsigned)(hi - lo), room = 0xffffffffu - count;
	count += shows < room ? shows : room;
	if (!*flag) {
		s[SHOW] = show + (float)shows;
		s[CLICK] = click + clicks;
		s[SEEN] = __uint_as_float(today);
		s[COUNT] = __uint_as_float(count);
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

// Value h of a word.
DEVICE float widened(float word, int h, int format) {
	unsigned part = __float_as_uint(word) >> (16 * h) & 0xffff;
	return format == FLOAT16 ? from_float16(part) : format == BFLOAT16 ? __uint_as_float(part << 16) : word;
}

// decays is 1 if there are factors.
KERNEL table_gather(float *values, const float *rows, const int *index, const int *admitted, const float *factors, int decays,
		int n, int words, int width, int format) {
	Element e(n, value_words(width, format));
	if (e.outside) {
		return;
	}
	float word = table_row(rows, index, e.i, words)[e.j];
	for (int h = 0; h < per_word(format); h++) {
		int k = e.j * per_word(format) + h;
		if (k >= width) {
			return;
		}
		float v = 0;
		if (admitted[e.i]) {
			v = widened(word, h, format);
			if (decays) {
				v = decayed(factors + 4 * (size_t)e.i, k, v);
			}
		}
		values[(size_t)e.i * width + k] = v;
	}
}
