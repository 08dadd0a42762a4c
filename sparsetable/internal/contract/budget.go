package contract

import "fmt"

// BudgetError says what did not fit the memory budget. It wraps ErrBudget.
type BudgetError struct {
	What        string // what was to be done; the subject of Error's sentence
	NeedBytes   int64  // the smallest budget that works
	BudgetBytes int64  // the budget of the table
	// LackingBytes is the part of the budget that the process cannot have at present. If there is
	// one, the error wraps ErrMemory, too.
	LackingBytes int64

	// PinnedRows and FitRows describe a Pull whose rows did not fit; they are 0 for other calls.
	// PinnedRows is how many rows would have been pinned, those of other working sets included.
	// FitRows is how many keys a Pull may have while no other working set is pinned: a larger pass
	// can be pulled, trained and released in parts of that size. It is 0 where no smaller Pull
	// helps, because the table itself does not fit the budget.
	PinnedRows int64
	FitRows    int
}

func (e *BudgetError) Error() string {
	text := fmt.Sprintf("%v: %s needs a budget of %d bytes, but the budget is %d", ErrBudget, e.What, e.NeedBytes, e.BudgetBytes)
	if e.LackingBytes > 0 {
		text += fmt.Sprintf(", of which %d bytes are unavailable: the machine, or its control group, has too little free memory", e.LackingBytes)
	}
	if e.FitRows > 0 {
		text += fmt.Sprintf("; a Pull of up to %d rows fits", e.FitRows)
	}
	return text
}

// Unwrap returns ErrBudget, and also ErrMemory if the process cannot have the whole budget.
func (e *BudgetError) Unwrap() []error {
	if e.LackingBytes > 0 {
		return []error{ErrMemory, ErrBudget}
	}
	return []error{ErrBudget}
}
