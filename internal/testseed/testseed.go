// Package testseed seeds tests that draw at random.
//
// A test run must be reproducible, or nobody knows which change broke it. On the other hand, the
// random numbers must change now and then, or nothing new is ever found. A test's seed is therefore
// derived from its name, and "make stress" asks for fresh seeds.
package testseed

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that changes the seeds: a number becomes the seed of every
// test, and "random" makes each test draw its own.
const Variable = "AIBOX_TEST_SEED"

// FaultsVariable is the environment variable that controls fault injection tests. By default each
// tries some places; with "every", as in "make stress", it tries all of them. Tests of tables on
// SSD also accept a share such as "2/8", every eighth place from the second on, for several
// processes that share the work.
const FaultsVariable = "AIBOX_TEST_FAULTS"

// EveryFault reports whether fault injection tests must try all places.
func EveryFault() bool { return os.Getenv(FaultsVariable) == "every" }

// Of returns the seed of a test, below 2^63, and logs it.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed, given := Given(t)
	if !given {
		h := fnv.New64a()
		_, _ = h.Write([]byte(t.Name()))
		seed = h.Sum64() >> 1
	}
	if Fresh() {
		seed = rand.Uint64() >> 1
	}
	t.Logf("seed %d (%s=%d)", seed, Variable, seed)
	return seed
}

// Rand returns a source of random numbers from the seed of a test.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}

// Fresh tells whether each test is to draw its own seed.
func Fresh() bool { return os.Getenv(Variable) == "random" }

// Given returns the seed that all tests are to take, if there is one.
func Given(t testing.TB) (seed uint64, given bool) {
	t.Helper()
	v := os.Getenv(Variable)
	if v == "" || Fresh() {
		return 0, false
	}
	seed, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		t.Fatalf(`%s=%q: want a number below 2^63, or "random"`, Variable, v)
	}
	return seed, true
}
