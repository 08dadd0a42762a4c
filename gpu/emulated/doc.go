// Package emulated is a gpu.Platform of any number of devices on the CPU, for tests of what is
// built on package gpu. It computes slowly and checks much.
//
// # When operations run
//
// Nothing runs on its own: there are no goroutines. An operation that is enqueued only becomes one
// of those that are pending. When a call has to wait, such as Stream.Synchronize, pending
// operations run one by one, each time a random one of those whose predecessors (in their stream
// or, by gpu.Order, in their graph, and by events) have finished, preferably one that the call
// needs. So most of them run as late as they may, and in every order in which they may.
// Options.Seed decides about the order, and about how many run at once when they are enqueued:
// none, some or all. With seed 0 all do. A program that orders its operations correctly computes
// the same with every seed.
//
// # What is found
//
// That an order was missing seldom shows in a result. So the emulation derives from the calls which
// operations are ordered (vector clocks, one component for the host and one for each stream;
// clock.go), and remembers for all bytes which operation wrote them last, and which have read
// them since (shadow.go). An access that is not ordered after a conflicting one is a
// *Hazard, with any seed, in the call that enqueues it. Reads of bytes that nothing has written
// are found in the same way.
//
// The host works on slices of pinned memory, which no call sees. What can be seen is whether the bytes
// that a pending copy is to read change until it runs, and whether those change that one is to
// write; the latter hold NaN meanwhile, so that who reads them too early computes NaN.
//
// Kernels are Go functions, which work on copies of their regions. The copies lie between guards,
// have NaN in the gaps between rows and in regions that are to be written, and are compared
// afterwards: a kernel that writes what it did not declare, or leaves out what it was to write, is
// a Hazard. The blocks of a launch run in random order. Numbers that a device could not read where
// they lie make the kernel fail, and a launch that the PTX of the image does not allow, where it
// has one, is refused.
//
// The first Hazard is final: every later call of the platform returns it, so that it is
// found also where an error was not looked at. It is always a fault of the program.
//
// # Faults of devices
//
// Memory is limited as Options.Devices says. FailCall and FailOperation make a call or
// an operation fail, by number, with any kind of error, so that a test can try all of them.
package emulated
