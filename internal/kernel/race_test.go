//go:build race

package kernel

// raceEnabled tells that the race detector is on: sync.Pool then drops objects
// at random.
const raceEnabled = true
