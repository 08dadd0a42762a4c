// Package tabletest has the suite of tests that every kind of sparse table must pass, and
// a file system in memory by which the tests inject faults and crashes.
//
// The main test performs a random sequence of operations both on a table and on a plain
// Go map, and compares them (random.go and random_*.go). The other tests check single
// promises of the sparsetable.Table contract (contract.go), row layouts (layouts.go) and
// faults (faults.go).
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

// Disk is what a table is stored on. Tests pass it to the Opener as Options.FS, whether or
// not the table uses it as a file system.
type Disk interface {
	sparsetable.FS
	// FailAt makes the n-th operation from now on fail with ErrInjected; 1 is the next
	// operation. With sticky every later operation fails, too. 0 ends the failures.
	FailAt(n int, sticky bool)
	// Failed reports whether an operation has failed since FailAt.
	Failed() bool
	// OpenFiles is the number of files that were not closed.
	OpenFiles() int
	// Files returns the paths of all files, sorted.
	Files() []string
	// Crash returns a disk with the contents that a crash at this moment may leave. This
	// disk itself does not change.
	Crash(rng *rand.Rand) Disk
}

// Kind describes a kind of table and how it differs from others.
type Kind struct {
	Open    Opener
	NewDisk func() Disk // nil: NewMemFS
	// MoreKeys is how many keys a random run has in addition to its few hundred, so that
	// their rows do not all fit a small budget.
	MoreKeys int
	// Vary changes the options of a random run's table, each time before it is opened, in
	// ways that do not change its rows. With MemoryBytes 0 all rows must fit.
	Vary func(rng *rand.Rand, o *sparsetable.Options)
	// RunBackground makes a table do something that does not change its rows, and returns a
	// description of it.
	RunBackground func(ctx context.Context, t sparsetable.Table, rng *rand.Rand) (what string, err error)
	// Lose takes files of a table, which is closed, away from a disk, as the loss of a
	// directory or of files does, and returns a description of them; nil: none are lost.
	Lose func(rng *rand.Rand, d Disk, o *sparsetable.Options) (what string)
	// Enough fails the test if the events that random runs are meant to test did not
	// happen often enough.
	Enough func(t *testing.T, c Counters)
	// NeedsReopen says that after a failed write the table has to be opened again.
	NeedsReopen bool
	// Evicts says that rows leave memory, so that placeholders (rows that were pulled but
	// never trained) may disappear, and that budgets are exact only to the size of the
	// pieces into which memory is divided.
	Evicts bool
	// OwnFiles says that the suite makes no assumption about the table's files. The files
	// of other kinds must hold what a table without a directory lacks, and opening a
	// damaged snapshot must report the damage.
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

// Contract runs the suite without the random sequences.
func Contract(t *testing.T, k Kind) {
	t.Run("ManyKeys", func(t *testing.T) { testManyKeys(t, k) })
	t.Run("OpenErrors", func(t *testing.T) { testOpenErrors(t, k) })
	t.Run("Layouts", func(t *testing.T) { testLayouts(t, k) })
	t.Run("ReadOnly", func(t *testing.T) { testReadOnly(t, k) })
	t.Run("Budget", func(t *testing.T) { testBudget(t, k) })
	t.Run("Duplicates", func(t *testing.T) { testDuplicates(t, k) })
	t.Run("ManyPins", func(t *testing.T) { testManyPins(t, k) })
	t.Run("PullModes", func(t *testing.T) { testPullModes(t, k) })
	t.Run("PullTrained", func(t *testing.T) { testPullTrained(t, k) })
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

// initRow is an Options.Init whose rows can be recognized.
func initRow(key uint64, row []float32) {
	for i := range row[:5] {
		row[i] = float32(uint16(key*0x9e3779b97f4a7c15>>40)+1) / float32(i+1)
	}
}

// options for a table in fs.
func options(fs sparsetable.FS) sparsetable.Options {
	return sparsetable.Options{Dir: "/table", Layout: layout, Init: initRow, FS: fs}
}
