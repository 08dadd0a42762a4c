// Package tablediff compares two embedding tables row by row: which rows were added,
// which were dropped, and how far the others moved, in all and by field.
//
// The tables keep their rows in different orders, and neither fits in memory. So the keys
// are divided into partitions by a hash, of a size for which the rows of one fit
// Options.MemoryBytes: those of the first table are kept, and those of the second compared
// with them. Both tables are scanned once, from beginning to end. The rows of the first
// partition are compared at once, and those of the others are put aside in temporary files
// in $TMPDIR (spill.go), which have no names, so that none is ever left behind.
//
// They take the space of the values of both tables, without the states of optimizers. Where
// $TMPDIR has less than twice as much, only as many partitions are put aside as fit half of
// the free space, and the tables are scanned again for the rest. Where files cannot be
// written, the tables are scanned once for each partition.
//
// A row does not say which field it belongs to. Options.Keys, if it is set, gives the keys
// of the fields, for example those in a log; a row of no known field is counted under
// no name.
package tablediff
