// Package blockio reads and writes the files of one directory in whole blocks
// of the device beneath it, past the page cache where the file system allows
// it, with many reads in flight.
//
// # Why
//
// A table larger than memory is bounded by the random reads of its SSD. Two
// things stand between a Go program and that bound. The page cache copies every
// block and spends memory that the table's budget does not know of: files are
// opened with O_DIRECT. And a goroutine in a blocking pread keeps its processor
// until the runtime's monitor takes it away, so that GOMAXPROCS = 2 means few
// more than two reads in flight: reads go through io_uring, which takes a whole
// batch in one system call and works on it while every goroutine computes.
//
// # Parts
//
//	Device       a directory: files, their names, free space; takes reads
//	File         read and written at multiples of the unit
//	Read         one read on its way; the caller's, reused without garbage
//	Completions  where the finished reads of one caller gather, of any devices
//	Pool         aligned memory outside the garbage collector's heap, counted
//
//	caller ── Submit(completions, reads) ──> queue ──> kernel, up to QueueDepth
//	caller <─ completions.Wait ── finished reads <─── engine (one per device)
//
// Open probes the directory once, with a file of its own that it removes again:
// whether O_DIRECT works and in which unit (512 bytes where the device and the
// file system take it, else 4096), and whether io_uring is allowed. What is not
// to be had falls back with a warning in the log: to buffered files, to a pool
// of goroutines in pread.
//
// # Alignment
//
// Offsets, lengths and addresses given to a File are multiples of the unit;
// a Pool hands out such memory. It is checked on every device, direct or not,
// so that a program that runs on one runs on all.
//
// # Ownership
//
// A Read and its buffer belong to the device from Submit until Wait returns
// that Read; the kernel may write into the buffer at any time in between. There
// is no cancellation: a read ends when the device ends it. A File may be closed
// while reads of it are on their way, they end as if it were open.
//
// # Concurrency
//
// Everything is safe for concurrent use, except that one Completions has one
// goroutine at a time in Wait. Submit never waits for the device: reads beyond
// the queue depth wait in a list. A device with io_uring owns one goroutine on
// a thread of its own, one with pread as many goroutines as its queue is deep;
// Close ends them after the last read.
//
// # Faults
//
// Package blocktest holds a device in memory that fails, tears, shortens and
// flips on demand and loses what was not synced when it crashes.
package blockio
