// Package emulated is a gpu.Platform of any number of devices on the CPU, for tests of what is
// built on package gpu. It computes slowly and checks much.
//
// # When operations run
//
// Nothing runs in the background: there are no goroutines. An enqueued operation merely becomes
// pending. When a call must wait, such as Stream.Synchronize, pending operations run one by one:
// each time a random one of those whose predecessors (in their stream, by gpu.Order in their graph,
// and by events) have finished, preferably one that the call needs. Most operations thus run as
// late as allowed, and in every allowed order. Options.Seed determines the order, and how many
// operations run immediately when they are enqueued: none, some or all; with seed 0 all do. A
// program that orders its operations correctly computes the same results with every seed.
//
// # What is found
//
// A missing order rarely shows in a result. The emulation therefore derives from the calls which
// operations are ordered (by vector clocks with one component for the host and one for each stream;
// clock.go), and remembers for all bytes which operation wrote them last and which have read them
// since (shadow.go). An access that is not ordered after a conflicting one is a *Hazard, with any
// seed, in the call that enqueues it. Reads of bytes that nothing has written are found in the same
// way.
//
// The host accesses slices of pinned memory, which the emulation cannot observe. It can check,
// however, whether the bytes that a pending copy will read or write change before it runs. Bytes
// that will be written hold NaN meanwhile, so that reading them too early yields NaN.
//
// Kernels are Go functions that work on copies of their regions. The copies are surrounded by
// guards, have NaN in the gaps between rows and in regions that will be written, and are checked
// afterwards: a kernel that writes what it did not declare, or does not write what it declared, is
// a Hazard. The blocks of a launch run in random order. Misaligned numbers make the kernel fail,
// and a launch that the PTX of the image, if there is one, does not allow is refused.
//
// The first Hazard is final: every later call of the platform returns it, so that it is noticed
// even if an error was ignored. It is always a fault of the program.
//
// # Faults of devices
//
// Memory is limited according to Options.Devices. FailCall and FailOperation make a call or an
// operation fail, by number, with any kind of error, so that a test can try all of them.
package emulated
