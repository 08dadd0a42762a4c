// Package faults knows what can be wrong with an input, and when it is too much. It knows nothing of
// how rows are decoded.
//
//	a decoder  --Fault--> List --BadRow--> Tally --> quarantine, log
//	a damaged file --Damage-------Loss--^     \--> *BadRowsError, *LostDataError
//
// A Fault says what is wrong with a row, by a Reason, the column and the cell. The workers put the
// faults of a block into a List, with the texts that people will see. The goroutine that brings the
// blocks into the order of the input hands them to the Tally, and with them Damage, which is what
// makes the rest of a file unreadable. The Tally counts, and so alone decides where reading ends:
//
//   - badTally applies the limits on bad rows. pace says how many rows the rest of the input can
//     have at most, so that an input of the wrong kind does not have to be read to its end.
//   - lossTally weighs damage by stored bytes, as a share of the whole input.
//   - longLines adds up lines that are much too long, which are bad rows and losses.
//
// What a Tally knows at the beginning of a unit is its State and its Counts, from which a later
// reading goes on.
//
// OptionsError is about faults that are not the input's.
package faults
