// Package tablediff compares two embedding tables row by row: which rows were added,
// which were dropped, and how far the others moved, in all and by field.
//
// The tables keep their rows in different orders, and neither fits in memory. The keys are
// therefore divided by a hash into partitions whose rows fit in Options.MemoryBytes. For each
// partition, both tables are scanned completely: the rows of the first are kept, and those of the
// second are compared with them. Reading is sequential, and nothing is written to disk.
//
// A row does not record its field. Options.Keys, if set, provides the keys of the fields, for
// example those in a log; rows of no known field are counted in a group without a name.
package tablediff
