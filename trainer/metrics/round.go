package metrics

import "strconv"

// Rounded formats a figure with few digits for the log.
func Rounded(v Value) string {
	if !v.Defined() {
		return "undefined"
	}
	return strconv.FormatFloat(float64(v), 'f', 5, 64)
}
