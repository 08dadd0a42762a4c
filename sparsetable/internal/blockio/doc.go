// Package blockio reads and writes the files of one directory in whole blocks
// of the device beneath it, past the page cache where the file system allows
// it, with many reads in flight.
//
// # Why
//
// The speed of a table that is larger than memory is bounded by the random reads of its
// SSD. Two things keep a Go program from reaching that bound. The page cache copies every block,
// and takes memory that the table's budget does not count; so files are opened with O_DIRECT. And a
// goroutine in a blocking pread keeps its processor until the runtime's monitor takes it away, so
// that with GOMAXPROCS = 2 there are few more than two reads in flight; so reads go through
// io_uring, which takes a whole batch in one system call and works on it while every goroutine
// computes. The goroutines that still block, those that write and the one that waits for
// completions, have an extra processor: see internal/cores.
//
// # Parts
//
//	Device       is a directory: its files, their names, free space; it takes reads
//	File         is read and written at multiples of the unit
//	Read         is one read; the caller owns it and may use it again
//	Completions  collects the finished reads of one caller, from any devices
//	Pool         hands out and counts aligned memory outside the Go heap
//
//	caller ── Submit(completions, reads) ──> queue ──> kernel, up to QueueDepth
//	caller <─ completions.Wait ── finished reads <─── engine (one per device)
//
// Open probes the directory once, with a file that it makes and removes again. It finds
// out whether O_DIRECT works and with which unit (512 bytes if the device and the file
// system accept that, else 4096), and whether io_uring is allowed. If one of them is not
// available, Open logs a warning and falls back: to buffered files instead of O_DIRECT,
// and to a pool of goroutines that call pread instead of io_uring.
//
// # Alignment
//
// Offsets, lengths and addresses given to a File must be multiples of the unit; a Pool
// hands out such memory. Every device checks this, whether it uses direct I/O or not, so
// that a program that works on one device works on all.
//
// # Ownership
//
// A Read and its buffer belong to the device from Submit until Wait returns
// that Read; the kernel may write into the buffer at any time in between. There
// is no cancellation: a read ends when the device ends it. A File may be closed while
// reads of it are under way; they end as if it were open.
//
// # Concurrency
//
// Everything is safe for concurrent use, except that one Completions has one
// goroutine at a time in Wait. Submit never waits for the device: reads beyond
// the queue depth wait in a list. A device with io_uring owns one goroutine on a thread of its own.
// A device with pread owns QueueDepth goroutines, or fewer if the process may not have that many
// threads. Close ends them after the last read.
//
// # Faults
//
// Package blocktest has a device in memory for tests. On demand its operations fail, tear
// or shorten writes or flip bits, and when it crashes it loses what was not synced.
package blockio
