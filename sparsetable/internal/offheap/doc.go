// Package offheap hands out memory outside the garbage collector's heap.
//
// A table's rows, cache directory and slot index are gigabytes of plain words. If they
// were on the heap, the collector would by default let the heap grow to twice their
// size before it runs, so that only half of a memory budget could be used. Outside the
// heap they count once and are never scanned. They must hold no Go pointers.
//
// Under the race detector the memory comes from the heap, because the detector does not
// watch mapped memory and could not find races on it.
package offheap
