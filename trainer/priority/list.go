package priority

import (
	"fmt"

	"aibox/sparsetable"
)

// Kinds of lists.
const (
	MFU  = "mfu"
	SSU  = "ssu"
	SCAR = "scar"
)

// Rows are the rows of a pass, such as a sparsetable.WorkingSet.
type Rows interface{ Row(i int) []float32 }

// List is a list of rows that were accessed since they were last saved. See the package
// documentation.
type List interface {
	// Begin sees the rows of a pass before they are trained, End after that. keys are distinct, and
	// rows.Row(i) belongs to keys[i].
	Begin(keys []uint64, rows Rows)
	End(keys []uint64, rows Rows)
	// Choose returns the keys of the rows that matter most, at most n, in no particular order.
	Choose(n int) []uint64
	// Saved says that rows were saved in their current state.
	Saved(keys []uint64)
	// Clear says that all rows were saved in their current state.
	Clear()
	// Resize says that at most the given number of rows will be chosen at a time.
	Resize(rows int64)
	// Bytes returns the memory of the list.
	Bytes() int64
}

// New returns a list of a kind for rows of a layout. It takes at most limit bytes. Only SSU draws
// random numbers, from seed.
func New(kind string, layout sparsetable.Layout, limit int64, seed uint64) List {
	switch kind {
	case MFU:
		return &mfu{entries: newEntries(limit, 0), accesses: accesses{layout: layout}}
	case SSU:
		return &ssu{entries: newEntries(limit, 0), accesses: accesses{layout: layout}, random: seed}
	case SCAR:
		words := layout.Words() - layout.StateDim - (sparsetable.Layout{}).Words()
		return &scar{entries: newEntries(limit, words), layout: layout, now: make([]float32, layout.ValueDim), then: make([]float32, layout.ValueDim)}
	}
	panic(fmt.Sprintf("priority: no list of kind %q", kind))
}

// accesses counts the accesses to the rows of a pass.
type accesses struct {
	layout sparsetable.Layout
	before []uint32 // counts of the rows at Begin
}

// Begin implements List.
func (a *accesses) Begin(keys []uint64, rows Rows) {
	a.before = a.before[:0]
	for i := range keys {
		a.before = append(a.before, a.layout.Stats(rows.Row(i)).Count)
	}
}

// in returns how often the pass has accessed row i.
func (a *accesses) in(i int, rows Rows) uint32 {
	return a.layout.Stats(rows.Row(i)).Count - a.before[i]
}

func (a *accesses) bytes() int64 { return 4 * int64(cap(a.before)) }
