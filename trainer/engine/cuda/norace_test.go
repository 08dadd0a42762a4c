//go:build !race

package cuda_test

// raceEnabled says whether the race detector watches, under which pools drop what they
// hold at random.
const raceEnabled = false
