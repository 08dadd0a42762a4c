#include "optim.h"

// The flag says that the step does not count.

// Notes a parameter that is NaN. All threads that do so write NaN.
DEVICE void notice(float *check, float w) {
	if (w != w) {
		*check = w;
	}
}

KERNEL optimize_sgd(const int *flag, float *check, const Update *u, float *w, const float *g, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_sgd(*u, u->shrink * w[i], g[i]);
	notice(check, w[i]);
}

KERNEL optimize_momentum(const int *flag, float *check, const Update *u, float *w, const float *g, float *b, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_momentum(*u, u->shrink * w[i], g[i], b[i]);
	notice(check, w[i]);
}

KERNEL optimize_adagrad(const int *flag, float *check, const Update *u, float *w, const float *g, float *s, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_adagrad(*u, u->shrink * w[i], g[i], s[i]);
	notice(check, w[i]);
}

KERNEL optimize_adam(const int *flag, float *check, const Update *u, float *w, const float *g, float *m, float *v, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_adam(*u, u->shrink * w[i], g[i], m[i], v[i]);
	notice(check, w[i]);
}

KERNEL optimize_ftrl(const int *flag, float *check, const Update *u, float *w, const float *g, float *z, float *squares, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_ftrl(*u, u->shrink * w[i], g[i], z[i], squares[i]);
	notice(check, w[i]);
}
