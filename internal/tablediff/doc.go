// Package tablediff compares two embedding tables row by row: which rows were added,
// which were dropped, and how far the others moved, in all and by field.
//
// The tables keep their rows in different orders, and neither fits in memory. So the keys
// are divided into partitions by a hash, of a size for which the rows of one fit
// Options.MemoryBytes. For each partition, both tables are scanned from beginning to end:
// the rows of the first are kept, and those of the second are compared with them. Reading
// is sequential, and nothing is written to disk.
//
// A row does not say which field it belongs to. Options.Keys, if it is set, gives the keys
// of the fields, for example those in a log; a row of no known field is counted under
// no name.
package tablediff
