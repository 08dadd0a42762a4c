// Command table measures embedding stores under a memory budget on the access
// pattern of a training job: pull the unique keys of a mini-batch, update all
// their rows, write them back. README.md says how to run it and what its
// columns mean.
//
// # Parts
//
//	config.go   flags
//	trace.go    the mini-batches: Zipf ranks and their keys
//	rows.go     the contents of a row, and the trainer's update
//	store.go    the interface that every store implements
//	driver_*.go the stores
//	cells.go    which phases of which stores run, each in a process of its own
//	external.go stores of other programs; keyfile.go writes the keys for them
//	phase.go    one phase, in its process
//	measure.go  its mini-batches, one after the other or while a trainer works
//	cached.go   the phase that several goroutines share
//	device.go   the device without a store
//	policies.go the cache policies of ssd side by side
//	figures.go  figures computed from the times
//	proc.go     what the kernel counts: device bytes, peak memory, page cache
//	report.go   the printed table
//
// # Processes
//
// Every phase runs in a separate process, so that restarts are real and peak memory is measured per
// store. The command starts itself with -child and a job in JSON; the child prints its result in
// JSON.
//
//	command ── job ──> child: load          fill the store, save, close
//	        ── job ──> child: p2            open, mini-batches, save, close
//	        ── job ──> child: p3            open, mini-batches, save, close
//
// # Same work, same answer
//
// All stores get the same mini-batches, rows of the same size, and the same initial rows. Every
// update folds the row's previous contents into a digest, so that a store that loses or mixes up an
// update has another digest than the others.
package main
