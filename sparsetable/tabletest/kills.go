package tabletest

import (
	"os"
	"strconv"
	"testing"
)

// killsVariable is how often each test kills that uses Kills; "make stress" sets
// it.
const killsVariable = "AIBOX_TEST_KILLS"

// Kills is how often a test of kill -9 is to kill: as often as the environment
// says, else usually so often, and in a short run as often as short says.
func Kills(t *testing.T, usual, short int) int {
	t.Helper()
	v := os.Getenv(killsVariable)
	switch {
	case v == "" && testing.Short():
		return short
	case v == "":
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of at least 1", killsVariable, v)
	}
	return n
}
