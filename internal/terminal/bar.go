package terminal

import "strings"

// Widths of bars, in columns.
const (
	maxBar = 30
	minBar = 10
)

// Flow joins parts into lines that are shorter than columns, unless a single part is
// longer.
func Flow(parts []string, columns int) []string {
	var out []string
	for i, p := range parts {
		if n := len(out); i > 0 && len(out[n-1])+2+len(p) < columns {
			out[n-1] += "  " + p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// BarWidth returns the width of a bar for which this many columns are free.
func BarWidth(columns int) int { return min(maxBar, max(minBar, columns)) }

// Bar draws a bar filled to a share from 0 to 1.
func Bar(share float64, width int) string {
	full := int(share * float64(width))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}
