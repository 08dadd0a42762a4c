// The loss of an example: see loss.go. Its weight is 1 if examples have no weights.
#pragma once

#include "functions.h"

// check is added to each term: 0, or NaN to make the loss NaN.
DEVICE float loss_term(float logit, float label, float weight, float check) {
	return (softplus(logit) - label * logit) * weight + check;
}

// The derivative of the mean of total terms with respect to the logit.
DEVICE float loss_slope(float logit, float label, float weight, int total) {
	return (sigmoid(logit) - label) * weight * (1 / (float)total);
}

// weighted is the stride of the weights, 0 if there are none.
DEVICE float weight_of(const float *w, int weighted, int i) { return weighted ? at(w, weighted, i, 0) : 1; }
