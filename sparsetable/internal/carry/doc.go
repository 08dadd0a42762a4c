// Package carry holds the copies of buckets that working sets carry.
//
// A row that a Pull had to read will, as a rule, not be needed again for a long
// time. It is trained once and is then among the first rows to leave the cache. To
// write it, its slot's bucket would have to be read a second time. So a working set
// keeps copies of the buckets that were read for it, within a part of the budget;
// this is called carrying them. When the set is released, the background writer
// merges the trained rows into these copies and writes them as the new buckets. A
// miss then costs one read, without a second one when its row leaves.
//
// The copies lie in chunks outside the garbage collector's heap. The chunks of a
// set are filled one after the other. A copy has this form:
//
//	slot 4 · rows 4 · location 8 · bytes of entries 8 · entries
package carry
