package runstate

import (
	"fmt"
	"testing"
)

// TestResumptionFormats: a run goes on from what this version and earlier ones have saved, and not from
// what a later one has.
func TestResumptionFormats(t *testing.T) {
	for format, want := range map[int]bool{0: false, oldestResume: true, RecordFormat: true, RecordFormat + 1: false} {
		_, _, err := Decode(fmt.Appendf(nil, `{"format": %d, "run": {}}`, format))
		if (err == nil) != want {
			t.Errorf("format %d: %v", format, err)
		}
	}
}
