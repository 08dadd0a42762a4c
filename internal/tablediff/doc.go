// Package tablediff compares two embedding tables row by row: which rows were added,
// which were dropped, and how far the others moved, in all and by field.
//
// The tables keep their rows in different orders, and neither fits in memory. The keys are
// therefore divided by a hash into partitions whose rows fit in Options.MemoryBytes. The rows of
// the first table are kept, and those of the second are compared with them. Both tables are scanned
// once, sequentially. The rows of the first partition are compared at once. Those of the others are
// put aside in temporary files in $TMPDIR (spill.go), which have no names, so that none is ever
// left behind.
//
// The files take the space of the values of both tables, without optimizer states. If $TMPDIR has
// less than twice as much, only as many partitions are put aside as fit in half of the free space,
// and the tables are scanned again for the rest. If files cannot be written, the tables are scanned
// once for each partition.
//
// A row does not record its field. Options.Keys, if set, provides the keys of the fields, for
// example those in a log; rows of no known field are counted in a group without a name.
package tablediff
