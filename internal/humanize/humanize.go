// Package humanize prints figures in a form that is easy to read, and paths in a form that
// can be pasted into a shell.
package humanize

import (
	"fmt"
	"math"
	"time"
)

// Bytes prints n in the largest binary unit in which the printed, rounded number is at least 1.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	x, u := float64(n), 0
	for math.Round(10*math.Abs(x)) >= 10*1024 {
		x /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// Percent prints a share as a percentage, with more digits if it is below one percent.
func Percent(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x > 0 && x < 0.01:
		return fmt.Sprintf("%.2f%%", 100*x)
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}

// PercentOf prints part as a percentage of whole. It prints 0 % if both are 0.
func PercentOf(part, whole int64) string {
	return Percent(float64(part) / float64(max(1, whole)))
}

// Count prints a number of things: 1 row, 2 rows.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Seconds prints a duration, rounded to seconds.
func Seconds(d time.Duration) string { return d.Round(time.Second).String() }
