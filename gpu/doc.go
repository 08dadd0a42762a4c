// Package gpu is what training needs of accelerators: memory, queues of work, kernels, matrix
// products, sums over several devices. It is a small interface with two implementations:
// package emulated emulates devices on the CPU, for tests, and package cuda has NVIDIA devices. Package
// trainer/engine/cuda trains on them, with the kernels of package kernels. Package profiled measures how long
// operations take. Package gputest has the suite that every implementation must pass.
//
// # Things
//
//	Platform      the devices of a machine, and how they are linked
//	  Device      memory, streams, events and modules of their own
//	    Memory    bytes of the device
//	    Pinned    bytes of the host that devices copy from and to
//	    Stream    a queue: its operations run one after the other; products may have an Epilogue
//	    Event     a mark in a stream that other streams and the host can wait for
//	    Module    code; has kernels by name
//	    Graph     captured operations of a stream, which are enqueued there by one call and may run side by side
//	  Group       devices that add up arrays together
//
// Open may be called several times for one physical device. Each call gives a separate logical
// device, with its own streams, memory and failures; they share the physical memory. This lets
// tests run several devices on one.
//
// Operations name what they work on by a Region: some bytes of a memory, or rows of bytes some
// distance apart, such as columns of a matrix. No pointers cross the interface, except for the
// slices in which the host sees pinned memory.
//
// # What is asynchronous
//
// Copy, Fill, Launch, Multiply, Record, Wait, Run and AllReduce are operations: the call enqueues
// them in their streams and returns. All other calls are synchronous. Only the following rules
// order two operations:
//
//   - of two operations of one stream, the earlier one is finished before the later one begins. A graph is
//     one operation; what orders those within it are the regions that they use (Order);
//   - what was enqueued before Record is finished before what is enqueued after a Wait for
//     that event begins, whatever the streams and devices. Wait means the latest Record
//     before the call of Wait; later ones do not matter;
//   - what the host did before it enqueued an operation is done when the operation begins;
//   - what was enqueued before is finished when Synchronize returns (of a stream or a
//     device: all of it; of an event: as with Wait) or when Done returned true;
//   - AllReduce begins on no device before all have reached it.
//
// There is no default stream that others wait for. Two operations, or an operation and the host,
// that use the same bytes, one of them writing, must be ordered by these rules;
// otherwise the result is undefined. The emulation reports it.
//
// # What must stay alive
//
// A memory must not be freed before the host knows that all operations that use it are finished:
// under the rules above, Free is an access of the host that writes every byte. The same holds for
// Graph.Free. Arguments (regions, products, slices of arguments) are copied by the call. Pinned
// memory that an operation reads must not change until the operation is finished, and memory that
// an operation writes must not be read before that. Fresh memory is uninitialized.
//
// Streams, events, modules, graphs and memory belong to their device and end with Device.Close
// at the latest. Close waits for the device's own streams; what other devices still do with its
// memory must be finished before.
//
// # Goroutines
//
// Only one goroutine at a time may call into a platform and everything that comes from it. A caller
// that drives several devices does so from one goroutine: calls only enqueue, so they are short,
// and a graph is one call. The slices of pinned memory may be used on any goroutine that is
// synchronized with the goroutine that makes the calls. Ranges of a Ranger have no such
// restriction.
//
// # Errors
//
// Errors are of type *Error; errors.Is finds their Kind. A call that is refused (OutOfMemory,
// InvalidArgument, InUse, WrongDriver) changes nothing, and the device remains usable. An operation
// that fails (LaunchFailed, ECC, DeviceLost) breaks the device: enqueued operations no longer run,
// the contents of everything that they would have written are undefined, and every later call on
// the device returns the error, with the failed operation if it is known. The next synchronizing
// call returns the error at the latest. Free and Close work on a broken device. Open then gives a
// new one, unless the hardware is gone or the driver refuses further service to a process that had
// a failure. If one device of a Group breaks, AllReduce breaks the others, which could otherwise
// wait for it forever. Waiting for an event of a broken device orders nothing: results that several
// devices compute together are valid only if all of them were synchronized without an error.
//
// # Determinism
//
// Each implementation gives the same bits, and the same answers of Stream.Fuses, for the same
// operations on the same kind and number of devices, in every run. Different implementations may
// differ in the last bits of products and sums. So may a product with an Epilogue and the same
// product followed by separate operations.
package gpu
