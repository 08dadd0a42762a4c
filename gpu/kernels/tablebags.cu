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

KERNEL table_gradients(float *grads, const float *dy, int lddy, const int *starts, const int *bags, const float *weights, int weighted,
		const float *means, int averages, int n, int fields, int width) {
	Element e(n, width);
	if (e.outside) {
		return;
	}
	auto gradient = [&](int bag) { return at(dy, lddy, bag / fields, bag % fields * width + e.j); };
	auto factor = [&](int p, int bag) { return (averages ? means[bag] : 1) * (weighted ? weights[p] : 1); };
	auto added = [&](float sum, float f, float g) { return weighted || averages ? fmaf(f, g, sum) : sum + g; };
	float sum = 0;
	int p = starts[e.i], end = starts[e.i + 1];
	for (; end - p >= AHEAD; p += AHEAD) {
		float f[AHEAD], g[AHEAD];
		for (int q = 0; q < AHEAD; q++) {
			int bag = bags[p + q];
			f[q] = factor(p + q, bag);
			g[q] = gradient(bag);
		}
		for (int q = 0; q < AHEAD; q++) {
			sum = added(sum, f[q], g[q]);
		}
	}
	for (; p < end; p++) {
		sum = added(sum, factor(p, bags[p]), gradient(bags[p]));
	}
	grads[(size_t)e.i * width + e.j] = sum;
}
