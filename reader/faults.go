package reader

import "aibox/reader/internal/faults"

// What can be wrong with the input and the options; see package faults.
type (
	BadRow        = faults.BadRow
	ReasonCount   = faults.ReasonCount
	BadRowsError  = faults.BadRowsError
	Loss          = faults.Loss
	LostDataError = faults.LostDataError
	OptionsError  = faults.OptionsError
)

// ReasonOutput is the reason of a bad row that has a cell that the output cannot hold.
const ReasonOutput = faults.ReasonOutput
