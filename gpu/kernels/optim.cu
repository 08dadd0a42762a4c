#include "bf16.h"
#include "optim.h"

// If the flag is set, nothing is updated. rounds is 1 if values are also stored in bfloat16, in
// half.

// Sets a parameter, and makes check NaN if the parameter is. All threads that do so write the same
// NaN.
DEVICE void set(float *check, float *w, unsigned short *half, int rounds, unsigned i, float x) {
	w[i] = x;
	if (rounds) {
		half[i] = bf16_bits(x);
	}
	if (x != x) {
		*check = __uint_as_float(0x7fffffff);
	}
}

KERNEL optimize_sgd(const int *flag, float *check, const Update *u, float *w, const float *g,
	unsigned short *half, int rounds, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	set(check, w, half, rounds, i, step_sgd(*u, u->shrink * w[i], g[i]));
}

KERNEL optimize_momentum(const int *flag, float *check, const Update *u, float *w, const float *g, float *b,
	unsigned short *half, int rounds, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	set(check, w, half, rounds, i, step_momentum(*u, u->shrink * w[i], g[i], b[i]));
}

KERNEL optimize_adagrad(const int *flag, float *check, const Update *u, float *w, const float *g, float *s,
	unsigned short *half, int rounds, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	set(check, w, half, rounds, i, step_adagrad(*u, u->shrink * w[i], g[i], s[i]));
}

KERNEL optimize_adam(const int *flag, float *check, const Update *u, float *w, const float *g, float *m, float *v,
	unsigned short *half, int rounds, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	set(check, w, half, rounds, i, step_adam(*u, u->shrink * w[i], g[i], m[i], v[i]));
}

KERNEL optimize_ftrl(const int *flag, float *check, const Update *u, float *w, const float *g, float *z, float *squares,
	unsigned short *half, int rounds, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	set(check, w, half, rounds, i, step_ftrl(*u, u->shrink * w[i], g[i], z[i], squares[i]));
}
