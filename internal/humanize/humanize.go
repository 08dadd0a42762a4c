// Package humanize writes figures as people read them.
package humanize

import (
	"fmt"
	"math"
	"time"
)

// Bytes is n in the unit in which it is short.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// Percent is a share with as many digits as are of use.
func Percent(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x > 0 && x < 0.01:
		return fmt.Sprintf("%.2f%%", 100*x)
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}

// PercentOf is part as a percentage of whole, 0 % of nothing.
func PercentOf(part, whole int64) string {
	return Percent(float64(part) / float64(max(1, whole)))
}

// Count is a number of things: 1 row, 2 rows.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Seconds is a duration to the second.
func Seconds(d time.Duration) string { return d.Round(time.Second).String() }
