#include "optim.h"

// The flag says that the step does not count.

KERNEL optimize_sgd(const int *flag, const Update *u, float *w, const float *g, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_sgd(*u, u->shrink * w[i], g[i]);
}

KERNEL optimize_momentum(const int *flag, const Update *u, float *w, const float *g, float *b, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_momentum(*u, u->shrink * w[i], g[i], b[i]);
}

KERNEL optimize_adagrad(const int *flag, const Update *u, float *w, const float *g, float *s, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_adagrad(*u, u->shrink * w[i], g[i], s[i]);
}

KERNEL optimize_adam(const int *flag, const Update *u, float *w, const float *g, float *m, float *v, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_adam(*u, u->shrink * w[i], g[i], m[i], v[i]);
}

KERNEL optimize_ftrl(const int *flag, const Update *u, float *w, const float *g, float *z, float *squares, int n) {
	unsigned i = thread_number();
	if (i >= (unsigned)n || *flag) {
		return;
	}
	w[i] = step_ftrl(*u, u->shrink * w[i], g[i], z[i], squares[i]);
}
