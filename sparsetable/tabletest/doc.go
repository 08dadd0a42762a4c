// Package tabletest holds the suite that every kind of sparse table must pass,
// and the file system in memory that it injects faults and crashes with.
//
// The heart of it is a random sequence of operations on a table and on a plain
// Go map side by side (random.go and its neighbours); the other tests take up
// single promises of the sparsetable.Table contract (contract.go), row layouts
// (layouts.go) and faults (faults.go).
package tabletest

import (
	"context"
	"math/rand/v2"
	"testing"

	"aibox/sparsetable"
)

// Opener opens a table of the kind under test; sparsetable.Open, with
// Options.Kind set, is one.
type Opener func(context.Context, sparsetable.Options) (sparsetable.Table, error)

// Disk is what a table lies on. Tests hand it to the Opener as Options.FS,
// whether or not the table uses it as a file system.
type Disk interface {
	sparsetable.FS
	// FailAt makes the n-th operation from now on fail with ErrInjected, 1
	// being the next, and with sticky every later one too. 0 ends failures.
	FailAt(n int, sticky bool)
	// Failed reports whether an operation has failed since FailAt.
	Failed() bool
	// OpenFiles is the number of files that were not closed.
	OpenFiles() int
	// Files returns the paths of all files, sorted.
	Files() []string
	// Crash returns the disk as a crash at this moment may leave it; this one
	// goes on.
	Crash(rng *rand.Rand) Disk
}

// Kind is a kind of table, and what is special about it.
type Kind struct {
	Open    Opener
	NewDisk func() Disk // nil: NewMemFS
	// MoreKeys than the few hundred of a random run, so that they do not all
	// fit a small budget.
	MoreKeys int
	// Vary changes the options of a random run's table before it is opened,
	// again and again, in ways that leave no trace in its rows. MemoryBytes 0
	// must be enough for all rows.
	Vary func(rng *rand.Rand, o *sparsetable.Options)
	// Poke makes a table do something that leaves no trace in its rows, and
	// says what.
	Poke func(ctx context.Context, t sparsetable.Table, rng *rand.Rand) (what string, err error)
	// Enough fails the test if what random runs are to test did not happen often
	// enough.
	Enough func(t *testing.T, c Counters)
	// NeedsReopen: after a failed write only opening it again helps.
	NeedsReopen bool
	// Evicts: rows leave memory, so that placeholders may come to an end, and
	// budgets are exact only as far as memory is cut into pieces.
	Evicts bool
	// OwnFiles: its files are its own affair. Those of other kinds must hold
	// what a table without a directory lacks, and a snapshot's damage must show
	// when it is opened.
	OwnFiles bool
}

func (k Kind) disk() Disk {
	if k.NewDisk != nil {
		return k.NewDisk()
	}
	return NewMemFS()
}

// Run runs the whole suite.
func Run(t *testing.T, k Kind) {
	t.Run("Random", func(t *testing.T) { Random(t, k) })
	Contract(t, k)
}

// Contract runs the suite but for random sequences.
func Contract(t *testing.T, k Kind) {
	t.Run("ManyKeys", func(t *testing.T) { testManyKeys(t, k) })
	t.Run("OpenErrors", func(t *testing.T) { testOpenErrors(t, k) })
	t.Run("Layouts", func(t *testing.T) { testLayouts(t, k) })
	t.Run("ReadOnly", func(t *testing.T) { testReadOnly(t, k) })
	t.Run("Budget", func(t *testing.T) { testBudget(t, k) })
	t.Run("Twins", func(t *testing.T) { testTwins(t, k) })
	t.Run("ManyPins", func(t *testing.T) { testManyPins(t, k) })
	t.Run("Misuse", func(t *testing.T) { testMisuse(t, k) })
	t.Run("Cancel", func(t *testing.T) { testCancel(t, k) })
	t.Run("TrainWhileSaving", func(t *testing.T) { testTrainWhileSaving(t, k) })
	t.Run("FailEveryOperation", func(t *testing.T) { testFailEveryOperation(t, k) })
	if !k.OwnFiles {
		t.Run("Corruption", func(t *testing.T) { testCorruption(t, k) })
	}
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
