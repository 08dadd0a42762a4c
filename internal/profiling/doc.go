// Package profiling records where a process spends its time and memory, as files in a
// directory that `go tool pprof` and `go tool trace` read.
//
//	cpu.pprof     processor time; stages of a pipeline are told apart by the label "stage"
//	heap.pprof    what was allocated and still in use when the heap was at its largest
//	allocs.pprof  everything that was allocated until the end
//	mutex.pprof   who made others wait for a lock
//	block.pprof   who waited, and where, for at least some tens of microseconds
//	trace.out     what each goroutine did when, from the start until the file is full
//	kernels.tsv   the time of each kernel on devices, if the caller has some
//
// The profiles are written when the session is stopped, whatever the outcome of the work.
// A process that is killed, or exits without stopping its session, leaves incomplete files.
package profiling
