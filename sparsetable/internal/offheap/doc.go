// Package offheap hands out memory outside the garbage collector's heap.
//
// A table's rows, cache directory and slot index are arrays of plain words,
// gigabytes of them. On the heap they would make the collector wait for twice
// their size before it runs, so that a memory budget could only be half used;
// here they count once and are never scanned. They must hold no Go pointers.
//
// Under the race detector the memory comes from the heap: the detector does
// not look at mapped memory, and races on it are what it is to find.
package offheap
