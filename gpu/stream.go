package gpu

import "time"

// Stream is a queue of operations of a device, which run one after the other; those of a Graph,
// which is one operation, may not. Its methods enqueue and return, except for Synchronize and
// Capture.
type Stream interface {
	Name() string
	Device() Device

	// Copy copies between regions that have as many rows of as many bytes, do not overlap, and
	// lie in memory of the device, in pinned memory or, one of them, in memory of another
	// device.
	Copy(dst, src Region) error
	// Fill sets all words of a region of the device, made of rows of whole words, to word.
	Fill(dst Region, word uint32) error
	// Launch runs a kernel. See Arg for what it may use.
	Launch(k Kernel, g Geometry, args ...Arg) error
	// Multiply computes a matrix product, whose matrices and bias are in memory of the device. A
	// product with an epilogue is an InvalidArgument unless Fuses has returned true for its shape
	// in this stream.
	Multiply(p Product) error
	// Fuses reports whether Multiply can do a product with its epilogue; it can do all products
	// without one. The answer is the same for all products of one Shape and is cached, so asking
	// again costs next to nothing. The first call prepares the stream for products, so it is not
	// allowed during a capture. Nothing is enqueued.
	Fuses(p Product) (bool, error)
	// PrepareProducts allocates what the products of the stream need, in Info.ProductBytes of
	// device memory. Otherwise the first Multiply does that, except during a capture, in which case
	// the error is InvalidArgument.
	PrepareProducts() error

	// Record sets an event of the same device to this place in the queue.
	Record(e Event) error
	// Wait lets later operations of this stream begin only after those that were in front of
	// the latest Record of e, which may belong to any device. An event that was never recorded
	// is an error: it would order nothing.
	Wait(e Event) error
	// Synchronize returns when all operations of the stream have finished.
	Synchronize() error

	// Capture calls enqueue. The operations that enqueue puts into this stream do not run but
	// become the graph, with their arguments and memory. enqueue must not do anything else to this
	// stream, nor Record, Wait or AllReduce. If there are products, the stream must have been
	// prepared for them. Invalid arguments are reported by the call of the operation, all other
	// errors by Capture.
	Capture(name string, enqueue func() error) (Graph, error)
	// Run enqueues a graph that was captured in this stream, as one operation: the graph begins
	// when all earlier operations have finished, and later operations begin when all operations of
	// the graph have finished.
	Run(g Graph) error
}

// Event is a mark in a stream.
type Event interface {
	Name() string
	// Done reports whether everything before the latest Record has finished. If so, it has also
	// finished from the host's point of view, as after Synchronize.
	Done() (bool, error)
	// Synchronize returns when what was in front of the latest Record has finished.
	Synchronize() error
	// Since returns the time from an earlier event of the same device to this one, both of which
	// must be Done.
	Since(earlier Event) (time.Duration, error)
}

// Graph is a series of operations that was captured. It runs in the stream in which that was done,
// and nowhere else: so its runs, and all that the stream does besides, can share what the stream
// has.
//
// The operations give the results that they would give one after the other. But only those wait for
// one another that Order says: those that use nothing in common which one of them writes may run at
// the same time, or the later one first.
type Graph interface {
	Name() string
	// Free gives back what the graph takes. All its runs must have finished.
	Free() error
}

// Group is devices that compute together.
type Group interface {
	// AllReduce adds up arrays of float32 of one size, one on each device, in an order that
	// does not change from run to run, and leaves the sum in all of them. It is one
	// operation of all streams: stream i belongs to device i of the group and array i lies there.
	AllReduce(streams []Stream, arrays []Region) error
}
