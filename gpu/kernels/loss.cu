#include "loss.h"

KERNEL loss_terms(float *terms, int ldterms, const float *z, int ldz, const float *y, int ldy, const float *w, int weighted,
	const float *check, int rows) {
	Element e(rows, 1);
	if (e.outside) {
		return;
	}
	at(terms, ldterms, e.i, 0) = loss_term(at(z, ldz, e.i, 0), at(y, ldy, e.i, 0), weight_of(w, weighted, e.i), *check);
}

KERNEL loss_grad(float *dz, int lddz, const float *z, int ldz, const float *y, int ldy, const float *w, int weighted,
	int rows, int total) {
	Element e(rows, 1);
	if (e.outside) {
		return;
	}
	at(dz, lddz, e.i, 0) = loss_slope(at(z, ldz, e.i, 0), at(y, ldy, e.i, 0), weight_of(w, weighted, e.i), total);
}
