package main

import (
	"math"
	"slices"
)

// percentile is the smallest of values such that at least the share p (0 … 1) of them are
// not larger; it is 0 if there are no values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func median(values []float64) float64 { return percentile(values, 0.5) }
