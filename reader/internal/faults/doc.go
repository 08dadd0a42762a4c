// Package faults describes what can be wrong with an input, counts it, and decides when it is too
// much. It knows nothing about how rows are decoded.
//
//	a decoder  --Fault--> List --BadRow--> Tally --> quarantine, log
//	a damaged file --Damage-------Loss--^     \--> *BadRowsError, *LostDataError
//
// A Fault says what is wrong with a row: a Reason, the column and the cell. The workers put the
// faults of a block into a List, with the texts that people will see. The goroutine that restores
// the order of the input hands them to the Tally, together with Damage, which makes the rest of a
// file unreadable. Only the Tally counts, and thus decides where reading ends:
//
//   - badTally applies the limits on bad rows. pace says how many rows the rest of the input can
//     have at most, so that an input of the wrong kind does not have to be read to its end.
//   - lossTally weighs damage by stored bytes, as a share of the whole input.
//   - longLines adds up lines that are much too long, which are bad rows and losses.
//
// State and Counts are the state of a Tally at the beginning of a unit, from which a later reading
// resumes.
//
// OptionsError is about faults that are not the input's.
package faults
