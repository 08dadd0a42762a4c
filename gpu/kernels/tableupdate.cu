#include "mix.h"
#include "optim.h"
#include "table.h"

// The values of a step that row updates need besides constants, in the layout of AppendRowStep.
struct RowStep {
	word64 rounding;
	float factors[4];
	float clock;
};

// The arguments common to table_sums and table_update. grouped is 1 if there are groups.
#define ROW_UPDATE \
	const int *index, const int *admitted, const float *values, const float *grads, const int *starts, const int *bags, \
	const int *groups, int grouped, const Update *constants, const RowStep *step, \
	int n, int fields, int words, int width, int format, int state_words, int decays, int split, int first, int rest

// The two sets of constants of row i: [0] for the first value, [1] for the others.
DEVICE const Update *row_constants(unsigned i, const int *starts, const int *bags, const int *groups, int grouped, int fields, const Update *constants) {
	int last = starts[i + 1];
	return constants + (grouped && last > starts[i] ? 2 * groups[bags[last - 1] % fields] : 0);
}

// How many state numbers a value has or, with ROWWISE_ADAGRAD, a row: kernel.Formula.Slots.
DEVICE int slots(int formula) { return formula == SGD ? 0 : formula == ADAM || formula == FTRL ? 2 : 1; }

// The mean of the squared gradients of values lo to hi-1 of a row.
DEVICE float mean_square(const Update &u, const float *values, const float *grads, int lo, int hi, const float *factors) {
	float sum = 0;
	for (int k = lo; k < hi; k++) {
		float d = penalized(u, factors ? decayed(factors, k, values[k]) : values[k], grads[k]);
		sum += d * d;
	}
	return sum / (float)(hi - lo);
}

// Updates the sums of ROWWISE_ADAGRAD, which all values of a row share.
KERNEL table_sums(const int *flag, float *rows, ROW_UPDATE) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag || !admitted[i]) {
		return;
	}
	float *state = table_row(rows, index, i, words) + value_words(width, format);
	const Update *u = row_constants(i, starts, bags, groups, grouped, fields, constants);
	const float *factors = decays ? step->factors : 0;
	values += (size_t)i * width;
	grads += (size_t)i * width;
	if (split && first == ROWWISE_ADAGRAD) {
		state[0] += mean_square(u[0], values, grads, 0, 1, factors);
	}
	if (rest == ROWWISE_ADAGRAD) {
		state[split ? slots(first) : 0] += mean_square(u[1], values, grads, split, width, factors);
	}
}

// A value after its update. state[0] is its first state number, state[distance] its second.
DEVICE float stepped(int formula, const Update &u, float w, float g, float *state, int distance) {
	switch (formula) {
	case SGD:
		return step_sgd(u, w, g);
	case ADAGRAD:
		return step_adagrad(u, w, g, state[0]);
	case ROWWISE_ADAGRAD: // table_sums has already added the gradient
		return step_by_sum(u, w, g, state[0]);
	case ADAM:
		return step_adam(u, w, g, state[0], state[distance]);
	}
	return step_ftrl(u, w, g, state[0], state[distance]);
}

DEVICE unsigned at_most(unsigned x, unsigned most) { return x < most ? x : most; }

// half.Float16
DEVICE unsigned to_float16(float x, unsigned random) {
	unsigned b = __float_as_uint(x), sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b >= 0x7f800000) {
		return sign | (b > 0x7f800000 ? 0x7e00 : 0x7c00);
	}
	if (b >= (127 - 14) << 23) {
		return sign | at_most((b - ((127 - 15) << 23) + (random >> 19)) >> 13, 0x7bff);
	}
	unsigned e = b >> 23;
	word64 m = b & 0x7fffff;
	if (e == 0) {
		e = 1;
	} else {
		m |= 1 << 23;
	}
	unsigned shift = 126 - e;
	word64 dropped = shift < 64 ? m << 32 >> shift : 0;
	return sign | (unsigned)((dropped + random) >> 32);
}

// half.BFloat16
DEVICE unsigned to_bfloat16(float x, unsigned random) {
	unsigned b = __float_as_uint(x), sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b >= 0x7f800000) {
		return sign | (b > 0x7f800000 ? 0x7fc0 : 0x7f80);
	}
	return sign | at_most((b + (random >> 16)) >> 16, 0x7f7f);
}

// A thread works on at_once words: 1, or 4 if they are float32.
KERNEL table_update(const int *flag, float *rows, unsigned *overflowed, const word64 *keys, ROW_UPDATE, int at_once) {
	Element e(n, at_once == 4 ? width / 4 : value_words(width, format));
	if (e.outside) {
		return;
	}
	int stopped = *flag, used = admitted[e.i]; // these loads overlap
	if (stopped || !used) {
		return;
	}
	float *row = table_row(rows, index, e.i, words);
	float *state = row + value_words(width, format);
	const Update *u = row_constants(e.i, starts, bags, groups, grouped, fields, constants);
	int from = e.j * at_once * per_word(format);
	values += (size_t)e.i * width;
	grads += (size_t)e.i * width;
	// The new value of w, value k of the row with gradient g.
	auto next = [&](int k, float w, float g) {
		bool is_first = k < split;
		int formula = is_first ? first : rest;
		float *s = state;
		if (!is_first) {
			s += (split ? slots(first) : 0) + (formula == ROWWISE_ADAGRAD ? 0 : k - split);
		}
		float v = stepped(formula, u[!is_first], decays ? decayed(step->factors, k, w) : w, g, s, is_first ? 1 : width - split);
		if ((__float_as_uint(v) & 0x7f800000) == 0x7f800000) {
			atomicMin(overflowed, e.i);
		}
		return v;
	};
	if (decays && e.j == 0) {
		state[state_words - 1] = step->clock;
	}
	if (at_once == 4) {
		Numbers<4> w = numbers<4>(values + from), g = numbers<4>(grads + from);
		for (int h = 0; h < 4; h++) {
			w.v[h] = next(from + h, w.v[h], g.v[h]);
		}
		put(row + from, w);
		return;
	}
	float v[2] = {0, 0};
	int count = width - from < per_word(format) ? width - from : per_word(format);
	for (int h = 0; h < count; h++) {
		v[h] = next(from + h, values[from + h], grads[from + h]);
	}
	if (format == FLOAT32) {
		row[e.j] = v[0];
		return;
	}
	word64 random = mix_bits(mix_bits(keys[index[e.i]] ^ step->rounding) + (e.j + 1) * GOLDEN_GAMMA);
	unsigned lo = (unsigned)random, hi = (unsigned)(random >> 32), bits;
	if (format == FLOAT16) {
		bits = to_float16(v[0], lo) | (count > 1 ? to_float16(v[1], hi) << 16 : 0);
	} else {
		bits = to_bfloat16(v[0], lo) | (count > 1 ? to_bfloat16(v[1], hi) << 16 : 0);
	}
	row[e.j] = __uint_as_float(bits);
}
