//go:build race

package cpu_test

// raceEnabled says whether the race detector watches, under which pools drop what they
// hold at random.
const raceEnabled = true
