package contract

// PullMode says what Pull does with a key that has no row.
type PullMode uint8

const (
	PullCreate PullMode = iota // create the row
	PullLookup                 // refer to a shared zero row, create nothing

	// PullDivisible is added to a mode by a caller that can divide the keys among several Pulls. If
	// a table on SSD could hold the rows of all these keys only without its Bloom filters, it then
	// keeps the filters and returns a *BudgetError.
	PullDivisible PullMode = 1 << 7

	// PullAhead is added to PullCreate by a caller that pulls rows some time before it changes
	// them, and calls Begin of the set before the first change. A snapshot of a table on SSD that
	// is fixed in between need not copy these rows at once.
	PullAhead PullMode = 1 << 6

	// PullTrained is added to PullLookup by a caller that knows that no key has an untrained
	// row. The counts are not read then, so it may run while rows are being updated.
	PullTrained PullMode = 1 << 5

	// PullPatient is added to a mode by a caller that has other working sets and releases them
	// whatever this Pull returns. A table on SSD sometimes needs a moment without pinned rows,
	// because they keep memory from its index or from the process. It then returns ErrCrowded, and
	// the caller pulls again when it has released a set.
	PullPatient PullMode = 1 << 4

	pullFlags = PullDivisible | PullAhead | PullTrained | PullPatient
)

// Kind is PullCreate or PullLookup, without the flags that are added to it.
func (m PullMode) Kind() PullMode { return m &^ pullFlags }

// RowSource yields rows for Import; Next returns io.EOF at the end. row is valid until the next
// call.
type RowSource interface {
	Next() (key uint64, row []float32, err error)
}
