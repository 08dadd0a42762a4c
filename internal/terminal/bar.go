package terminal

import "strings"

// Widths of bars, in columns.
const (
	maxBar = 30
	minBar = 10
)

// Flow joins parts to lines that fit the columns of a terminal, but for a part
// that is too long by itself.
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

// BarWidth is the width of a bar where so many columns are free for it.
func BarWidth(columns int) int { return min(maxBar, max(minBar, columns)) }

// Bar draws a share of what is done.
func Bar(share float64, width int) string {
	full := int(share * float64(width))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}
