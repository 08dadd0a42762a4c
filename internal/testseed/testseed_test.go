package testseed_test

import (
	"testing"

	"aibox/internal/testseed"
)

func TestOf(t *testing.T) {
	var parts []uint64
	for _, set := range []string{"", "17", "random"} {
		t.Setenv(testseed.Variable, set)
		first, again := testseed.Of(t), testseed.Of(t)
		if same := first == again; same != (set != "random") {
			t.Errorf("%q: %d, then %d", set, first, again)
		}
		t.Run("part", func(t *testing.T) { parts = append(parts, testseed.Of(t)) })
		if part := parts[len(parts)-1]; (part == first) != (set == "17") {
			t.Errorf("%q: %d for the test, %d for its part", set, first, part)
		}
		if set == "17" && first != 17 {
			t.Errorf("17 was given, the seed is %d", first)
		}
	}
}
