//go:build race

package model

// raceEnabled says whether the race detector watches the tests.
const raceEnabled = true
