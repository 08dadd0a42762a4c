package dataset

import "testing"

// TestInitialBiasWithoutWeight checks that the first examples may all have weight 0.
func TestInitialBiasWithoutWeight(t *testing.T) {
	if got := (&FirstLook{Examples: 60}).LogOdds(); got != 0 {
		t.Errorf("%v, want 0", got)
	}
}
