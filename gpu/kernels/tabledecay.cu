#include "table.h"

// The structs are the 64-bit words of decay.Timeline and decay.Moment, in the layout of
// AppendWords.

struct Accumulators {
	long long from, to;
	double epsilon;
};

struct Sums {
	double alike[2], divided[2]; // [0] of the first value, [1] of the others
};

struct Curve {
	long long lo, hi; // its pieces are lo to hi-1
};

struct Segment {
	long long after, divided;
	Sums before;
	Curve curves[2];
};

struct Piece {
	long long after;
	double before, first, slope;
};

struct Timeline {
	long long segments, base;
	Accumulators by[2];
	// segments and pieces follow
};

struct Moment {
	long long step;
	Sums sums;
};

// The sum of the first n steps of a curve, n > 0.
DEVICE double curve_sum(const Piece *pieces, Curve c, long long n) {
	long long lo = c.lo, hi = c.hi; // the last piece that begins before step n is one of [lo, hi)
	while (hi - lo > 1) {
		long long middle = (lo + hi) / 2;
		if (pieces[middle].after < n) {
			lo = middle;
		} else {
			hi = middle;
		}
	}
	Piece p = pieces[lo];
	double k = (double)(n - p.after);
	return p.before + (k * p.first + p.slope * k * (k - 1) / 2);
}

// The sums of all steps up to the given one.
DEVICE Sums sums_at(const Timeline *t, long long step) {
	const Segment *segments = (const Segment *)(t + 1);
	const Piece *pieces = (const Piece *)(segments + t->segments);
	long long i = t->segments - 1;
	while (i >= 0 && segments[i].after >= step) {
		i--;
	}
	if (i < 0) {
		return Sums{};
	}
	const Segment &s = segments[i];
	Sums sums = s.before;
	double first = curve_sum(pieces, s.curves[0], step - s.after), rest = curve_sum(pieces, s.curves[1], step - s.after);
	if (s.divided) {
		sums.divided[0] += first;
		sums.divided[1] += rest;
	} else {
		sums.alike[0] += first;
		sums.alike[1] += rest;
	}
	return sums;
}

// The logarithm of a row's decay factor: log divided by the root of the row's mean accumulator,
// plus epsilon. It is 0, no decay, if the row has had no gradient yet.
DEVICE double divided(double log, const float *state, const Accumulators &a) {
	if (log == 0) {
		return 0;
	}
	double sum = 0;
	for (long long i = a.from; i < a.to; i++) {
		sum += state[i];
	}
	if (sum == 0) {
		return 0;
	}
	return log / (sqrt(sum / (double)(a.to - a.from)) + a.epsilon);
}

// fixmath's e^r - 1 for |r| <= 0.35
DEVICE double exp_tail(double r) {
	double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
	double p23 = 1.0 / 2 + 1.0 / 6 * r;
	double p45 = 1.0 / 24 + 1.0 / 120 * r;
	double p67 = 1.0 / 720 + 1.0 / 5040 * r;
	double p89 = 1.0 / 40320 + 1.0 / 362880 * r;
	double pab = 1.0 / 3628800 + 1.0 / 39916800 * r;
	double pcd = 1.0 / 479001600 + 1.0 / 6227020800.0 * r;
	double low = p23 + p45 * r2 + p67 * r4;
	double high = p89 + pab * r2 + pcd * r4;
	return r + r2 * low + r8 * high;
}

// fixmath.Exp for x <= 0. Results below 2^-1021 may be 0, since the caller converts them to float.
DEVICE double exp_of_sum(double x) {
	if (x != x) {
		return x;
	}
	if (x < -700) {
		return 0;
	}
	double k = floor(x * 1.44269504088896340735992468100189214 + 0.5);
	double r = x - k * 6.93147180369123816490e-01;
	r -= k * 1.90821492927058770002e-10;
	return (1 + exp_tail(r)) * __longlong_as_double(((long long)k + 1023) << 52);
}

// Sets the pair of decay factors from a logarithm: see decayed in table.h.
DEVICE void set_factor(float *out, double log) {
	out[0] = 0;
	out[1] = 1;
	if (log > -0.5) {
		out[0] = (float)(log > -0.35 && log < 0.35 ? exp_tail(log) : exp_of_sum(log) - 1);
	} else {
		out[1] = (float)exp_of_sum(log);
	}
}

KERNEL table_settle(float *factors, const float *rows, const int *index, const Moment *moment, const Timeline *timeline,
		int n, int words, int state_from, int state_words) {
	unsigned i = thread_number();
	if (i >= (unsigned)n) {
		return;
	}
	const float *state = table_row(rows, index, i, words) + state_from;
	float *out = factors + 4 * (size_t)i;
	const long long period = 0xffffffffll;
	unsigned before = __float_as_uint(state[state_words - 1]), now = (unsigned)((moment->step - timeline->base) % period) + 1;
	if (before == 0 || before == now) {
		out[0] = out[2] = 0;
		out[1] = out[3] = 1;
		return;
	}
	long long age = (long long)now - (long long)before;
	if (age < 0) {
		age += period;
	}
	Sums then = sums_at(timeline, moment->step - age);
	double log[2], by[2];
	for (int j = 0; j < 2; j++) {
		log[j] = moment->sums.alike[j] - then.alike[j];
		by[j] = moment->sums.divided[j] - then.divided[j];
	}
	if (by[0] != 0 || by[1] != 0) {
		log[0] += divided(by[0], state, timeline->by[0]);
		log[1] += divided(by[1], state, timeline->by[1]);
	}
	set_factor(out, log[0]);
	set_factor(out + 2, log[1]);
}
