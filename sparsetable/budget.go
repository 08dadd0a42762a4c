package sparsetable

import "fmt"

// BudgetError says what did not fit the memory budget. It wraps ErrBudget.
type BudgetError struct {
	What        string // what was to be done
	NeedBytes   int64  // the smallest budget that works
	BudgetBytes int64  // the budget that there is

	// PinnedRows and FitRows are of a Pull whose rows did not fit, else 0.
	// PinnedRows is how many rows would have been pinned, those of other working
	// sets included. FitRows is how many keys a Pull may have while no other working
	// set is pinned: a pass of more keys can be pulled, trained and released in
	// parts of so many. It is 0 where no smaller Pull helps, as the table itself
	// does not fit the budget.
	PinnedRows int64
	FitRows    int
}

func (e *BudgetError) Error() string {
	text := fmt.Sprintf("%v: %s needs a budget of %d bytes, it is %d", ErrBudget, e.What, e.NeedBytes, e.BudgetBytes)
	if e.FitRows > 0 {
		text += fmt.Sprintf("; %d rows fit at a time", e.FitRows)
	}
	return text
}

// Unwrap returns ErrBudget.
func (e *BudgetError) Unwrap() error { return ErrBudget }
