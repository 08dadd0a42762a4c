package tabletest

import (
	"os"
	"strconv"
	"testing"
)

// killsVariable sets how often each test that uses Kills kills; "make stress" sets it.
const killsVariable = "AIBOX_TEST_KILLS"

// Kills is how many times a test with kill -9 should kill its process: the value of the environment
// variable, or usual, or short with -short.
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
