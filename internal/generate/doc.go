// Package generate draws click logs from a known model, so that a trained model can be
// compared with the best possible predictions: the true probabilities.
//
// # The model
//
// An example has F sparse fields, each with a bag of values, and D dense
// columns. The popularity of a field's values follows a power law: the value of
// rank k is drawn with a probability proportional to k^-skew. Ids are a random permutation
// of the ranks. The probability of a click is
//
//	p     = sigmoid(logit)
//	logit = bias + linear + pairwise
//
//	linear   = a · ( Σ_f Σ_v effect(f,v)/√m_f  +  Σ_j slope(j)·(log1p(x_j) - μ_j)/σ_j )
//	pairwise = b · Σ_{f<g} < Σ_v (latent(f,v) - c_f)/√m_f , Σ_v (latent(g,v) - c_g)/√m_g >
//
// where v runs over the values of the example in the field and m_f is the mean
// number of values that it draws. effect, slope and latent (of LatentDim
// numbers) are random with mean 0 and variance 1. The means c_f make the
// pairwise part an interaction proper: a model without interactions can get
// none of it. The factors a and b are such that LinearStrength and
// InteractionStrength are the standard deviations of the two parts over the
// examples, and bias is such that the mean of p is BaseRate. All this is
// measured on a sample that is drawn apart from the log (calibrate.go).
//
// An empty cell of a sparse field adds nothing to the logit, and an empty cell of a dense
// column adds the same as x = 0. So a reader that replaces missing numbers by 0 sees all
// that the true logit depends on.
//
// # Drift
//
// Over days, effect, slope and latent of a feature turn on a circle between two
// independent draws, at a speed of the feature's own. Speeds follow the wrapped
// Cauchy distribution, for which the correlation of the effects of day d and
// day e over all features is (1-DriftPerDay)^(|d-e|/2). So on every day all but a share
// DriftPerDay of the variance is explained by the day before, and the generator needs no
// state that is passed on from day to day. Most features drift slowly, and a few fast.
// bias and c_f are measured again for each day.
//
// # Streaming and determinism
//
// Nothing is stored per value. Effects are hashes of (seed, field, value), and
// ranks are drawn by rejection-inversion, so memory is the same for 10 and for
// 10^12 values. Example i of day d is a function of the configuration, d and i
// alone: any range can be drawn by itself, by any number of threads, with the
// same result on every processor (internal/fixmath).
//
// # Use
//
// New checks a Config and calibrates; Generator.Generate draws a range of
// examples in blocks of columns and hands them, in order, to a callback; Meter
// adds up AUC and log loss of the true probabilities over blocks. A Generator
// may be used by several goroutines.
package generate
