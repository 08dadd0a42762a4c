// Package score compares predictions with labels: it computes the area under the ROC curve
// and the logarithmic loss. trainer/metrics uses it for the predictions of a model, and
// internal/generate for the true probabilities of generated examples, so that the figures
// of both are defined in exactly the same way.
//
// Ranking is by logit, a float32: two scores tie only when the model really
// gave the same number, not because a sigmoid saturated. A tie between a
// positive and a negative counts one half, so that
//
//		AUC = P(score+ > score-) + P(score+ = score-)/2.
//
//	  - Exact keeps every score: 4 bytes per example, 8 with weights. The result
//	    is that of all pairs, O(n log n), independent of the order of examples.
//	  - Histogram keeps a fixed number of counters, whatever the number of
//	    examples, and says how far its AUC can be from the exact one. Histograms
//	    merge.
//	  - Groups keeps 16 bytes per example for the AUC within groups, and past a
//	    limit looks at a sample of the groups.
//	  - Loss keeps six sums: log loss, normalized entropy, calibration.
//
// A value that the data does not define (an AUC with one class only, a mean of
// nothing) is NaN, never a number.
//
// All functions come from internal/fixmath and all sums have a fixed order, so
// results have the same bits on every processor. Nothing here is safe for
// concurrent use, and nothing checks its input: a caller keeps NaN and
// infinite logits, labels and weights out.
package score
