package main

import (
	"math"
	"slices"
)

// percentile is the smallest of values that at least part p of them (0 … 1) do
// not exceed; 0 for no values. It sorts values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	i := int(math.Ceil(p*float64(len(values)))) - 1
	return values[min(max(i, 0), len(values)-1)]
}
