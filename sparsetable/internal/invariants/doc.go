// Package invariants says whether the expensive checks are compiled in: with
//
//	go test -tags invariants ./sparsetable/...
//
// the table on SSD recounts its counters and looks at every bucket that it
// writes. What it finds are bugs of this program, so it panics.
package invariants

import "fmt"

// Check panics unless ok. Call it where Enabled is true alone, so that its
// arguments cost nothing otherwise.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}

// NoError panics with an error that a check has found.
func NoError(err error) {
	if err != nil {
		panic("invariant: " + err.Error())
	}
}
