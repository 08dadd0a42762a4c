// Package invariants says whether the expensive checks are compiled in: with
//
//	go test -tags invariants ./sparsetable/...
//
// the table on SSD compares its counters with a new count and checks every bucket that
// it writes. A check that fails shows a bug of this program, so it panics.
package invariants

import "fmt"

// Check panics unless ok. Call it only where Enabled is true, so that its arguments
// cost nothing otherwise.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}

// NoError panics if err, which a check has returned, is not nil.
func NoError(err error) {
	if err != nil {
		panic("invariant: " + err.Error())
	}
}
