package contract

// PullMode says what Pull does with a key that has no row.
type PullMode uint8

const (
	PullCreate PullMode = iota // create the row
	PullLookup                 // refer to a shared zero row, create nothing

	// PullDivisible is added to a mode by a caller that can divide the keys among
	// several Pulls. A table on SSD whose memory holds the rows of all these keys only
	// without its Bloom filters then keeps the filters and returns a *BudgetError.
	PullDivisible PullMode = 1 << 7

	// PullAhead is added to PullCreate by a caller that pulls rows some time before it
	// changes them, and calls Begin of the set before it changes the first. A snapshot of a
	// table on SSD that is fixed in between need not copy them at once.
	PullAhead PullMode = 1 << 6

	// PullTrained is added to PullLookup by a caller that knows that no key has an untrained
	// row. The counts are not read then, so it may run while rows are being updated.
	PullTrained PullMode = 1 << 5

	// PullPatient is added to a mode by a caller that has other working sets, which will be
	// released whatever becomes of this Pull. A table on SSD that wants to be without pinned rows
	// for a moment, because they keep memory from its index or from the process, then returns
	// ErrCrowded; the caller pulls again when a set was released.
	PullPatient PullMode = 1 << 4

	pullFlags = PullDivisible | PullAhead | PullTrained | PullPatient
)

// Kind is PullCreate or PullLookup, without what is added to it.
func (m PullMode) Kind() PullMode { return m &^ pullFlags }

// RowSource yields rows for Import; Next returns io.EOF at the end. row is
// valid until the next call.
type RowSource interface {
	Next() (key uint64, row []float32, err error)
}
