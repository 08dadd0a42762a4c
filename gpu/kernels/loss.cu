#include "functions.h"

// check is added to each term: it is 0, or NaN, which makes the loss NaN.
// weighted is the stride of the weights, 0 if there are none and all are 1.
KERNEL loss_terms(float *terms, int ldterms, const float *z, int ldz, const float *y, int ldy, const float *w, int weighted,
	const float *check, int rows) {
	Element e(rows, 1);
	if (e.outside) {
		return;
	}
	float logit = at(z, ldz, e.i, 0);
	float term = softplus(logit) - at(y, ldy, e.i, 0) * logit;
	if (weighted) {
		term *= at(w, weighted, e.i, 0);
	}
	at(terms, ldterms, e.i, 0) = term + *check;
}

KERNEL loss_grad(float *dz, int lddz, const float *z, int ldz, const float *y, int ldy, const float *w, int weighted,
	int rows, int total) {
	Element e(rows, 1);
	if (e.outside) {
		return;
	}
	float d = sigmoid(at(z, ldz, e.i, 0)) - at(y, ldy, e.i, 0);
	if (weighted) {
		d *= at(w, weighted, e.i, 0);
	}
	at(dz, lddz, e.i, 0) = d * (1 / (float)total);
}
