package score

import (
	"fmt"
	"slices"
)

const (
	// DefaultBins over the range below makes bins of 1/2048 in logit, which distinguish two
	// examples whose probabilities differ by a relative 0.05 %. It costs 1 MiB.
	DefaultBins = 1 << 16
	// Logits beyond ±histogramReach, which are probabilities below 1.2e-7 or as close to
	// 1, are in the outermost bins.
	histogramReach = 16
)

// Histogram computes the AUC of any number of examples in fixed memory, 16
// bytes per bin. Bins are equal steps of the logit from -16 to 16, the
// outermost open. Examples within a bin count as ties, so the AUC is off by at
// most half the share of positive-negative pairs that fall into one bin; AUC
// returns that bound with the value.
//
// With weights of 1 the counters are exact up to 2^53 examples per bin, and the result
// depends neither on the order of examples nor on merging. Other weights are summed in the
// order in which examples are added.
type Histogram struct {
	perLogit float64 // bins per unit of logit
	bins     []bin
}

type bin struct{ neg, pos float64 }

// NewHistogram returns a histogram with the given number of bins, at least 2; 0 means DefaultBins.
func NewHistogram(bins int) *Histogram {
	if bins == 0 {
		bins = DefaultBins
	}
	bins = max(bins, 2)
	return &Histogram{perLogit: float64(bins) / (2 * histogramReach), bins: make([]bin, bins)}
}

// Clone returns a copy.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{perLogit: h.perLogit, bins: slices.Clone(h.bins)}
}

// Add adds one example. The logit must not be NaN, the weight finite and not
// negative.
func (h *Histogram) Add(logit float32, positive bool, weight float32) {
	at := min(max(float64(logit)+histogramReach, 0)*h.perLogit, float64(len(h.bins)-1))
	b := &h.bins[int(at)]
	if positive {
		b.pos += float64(weight)
	} else {
		b.neg += float64(weight)
	}
}

// Merge adds the counters of other, which must have as many bins.
func (h *Histogram) Merge(other *Histogram) {
	if len(h.bins) != len(other.bins) {
		panic(fmt.Sprintf("score: cannot merge a histogram of %d bins into one of %d", len(other.bins), len(h.bins)))
	}
	for i, b := range other.bins {
		h.bins[i].neg += b.neg
		h.bins[i].pos += b.pos
	}
}

// AUC returns the area and how far it can be from the exact one. Both are NaN unless there
// are examples of both classes.
func (h *Histogram) AUC() (auc, bound float64) {
	var w weighted
	for _, b := range h.bins {
		if b.pos > 0 || b.neg > 0 {
			w.add(b.pos, b.neg)
		}
	}
	return w.auc(), w.bound()
}

// Reset forgets all examples.
func (h *Histogram) Reset() { clear(h.bins) }
