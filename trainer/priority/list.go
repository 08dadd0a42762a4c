package priority

import (
	"fmt"

	"aibox/sparsetable"
)

// The kinds of lists.
const (
	MFU  = "mfu"
	SSU  = "ssu"
	SCAR = "scar"
)

// Rows are the rows of a pass; a sparsetable.WorkingSet is one.
type Rows interface{ Row(i int) []float32 }

// List is a list of rows that were accessed since they were saved last. See the package's
// documentation.
type List interface {
	// Begin sees the rows of a pass before they are trained, End after it. keys differ, and
	// rows.Row(i) is that of keys[i].
	Begin(keys []uint64, rows Rows)
	End(keys []uint64, rows Rows)
	// Choose returns the keys of the rows that matter most, at most n, in no particular order.
	Choose(n int) []uint64
	// Saved says that rows are saved as they are now.
	Saved(keys []uint64)
	// Clear says that all rows are saved as they are now.
	Clear()
	// Resize says that at most so many rows will be chosen at a time.
	Resize(rows int64)
	// Bytes is the memory that the list takes.
	Bytes() int64
}

// New returns a list of a kind for rows of a layout, which takes no more than limit bytes. Of
// the kinds, only SSU draws, from seed.
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
	before []uint32 // counts of the rows
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
