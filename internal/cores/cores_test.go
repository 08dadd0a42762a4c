package cores

import (
	"runtime"
	"testing"
)

// TestSleepers: as long as anybody may sleep there is one processor more, and as many cores as ever.
func TestSleepers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	want := func(processors int) {
		t.Helper()
		if n := runtime.GOMAXPROCS(0); n != processors || Count() != 3 {
			t.Fatalf("GOMAXPROCS is %d and Count %d, want %d and 3", n, Count(), processors)
		}
	}
	want(3)
	one := Sleepers()
	want(4)
	other := Sleepers()
	want(4)
	one()
	want(4)
	other()
	want(3)
}
