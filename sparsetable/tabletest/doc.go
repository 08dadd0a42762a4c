// Package tabletest holds the suite that every kind of sparse table must pass,
// and the file system in memory that it injects faults and crashes with.
//
// The heart of it is a random sequence of operations on a table and on a plain
// Go map side by side (random.go); the other tests take up single promises of
// the sparsetable.Table contract (contract.go) and faults (faults.go).
package tabletest

import (
	"context"
	"testing"

	"aibox/sparsetable"
)

// Opener opens a table of the kind under test; sparsetable.Open, with
// Options.Kind set, is one.
type Opener func(context.Context, sparsetable.Options) (sparsetable.Table, error)

// Run runs the whole suite. What a table keeps on disk is its own affair, but
// it must go through Options.FS.
func Run(t *testing.T, open Opener) {
	t.Run("Random", func(t *testing.T) { testRandom(t, open) })
	t.Run("ManyKeys", func(t *testing.T) { testManyKeys(t, open) })
	t.Run("OpenErrors", func(t *testing.T) { testOpenErrors(t, open) })
	t.Run("ReadOnly", func(t *testing.T) { testReadOnly(t, open) })
	t.Run("Budget", func(t *testing.T) { testBudget(t, open) })
	t.Run("Misuse", func(t *testing.T) { testMisuse(t, open) })
	t.Run("Cancel", func(t *testing.T) { testCancel(t, open) })
	t.Run("TrainWhileSaving", func(t *testing.T) { testTrainWhileSaving(t, open) })
	t.Run("FailEveryOperation", func(t *testing.T) { testFailEveryOperation(t, open) })
	t.Run("Corruption", func(t *testing.T) { testCorruption(t, open) })
}

// layout of most tests: small, with an odd number of words.
var layout = sparsetable.Layout{ValueDim: 3, StateDim: 2}

// initRow is a recognizable Options.Init.
func initRow(key uint64, row []float32) {
	for i := range row[:5] {
		row[i] = float32(uint16(key*0x9e3779b97f4a7c15>>40)+1) / float32(i+1)
	}
}

// options for a table in fs.
func options(fs sparsetable.FS) sparsetable.Options {
	return sparsetable.Options{Dir: "/table", Layout: layout, Init: initRow, FS: fs}
}
