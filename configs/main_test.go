package configs

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"aibox/internal/testseed"
)

// TestMain gives rapid a fixed seed, as internal/testseed does: rapid's own is
// the time.
func TestMain(m *testing.M) {
	if !testseed.Fresh() {
		seed := os.Getenv(testseed.Variable)
		if seed == "" {
			seed = "1"
		}
		if err := flag.Set("rapid.seed", seed); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", testseed.Variable, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
