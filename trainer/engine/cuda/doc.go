// Package cuda is the engine that runs a network on the devices of a gpu.Platform. The rows of a
// pass are either in host memory, as in AIBox, where the host updates and pools them (package
// hostrows), or in device memory (package devicerows). The devices do everything else, with the
// kernels of package kernels.
//
// # One mini-batch, with rows on the host
//
//	host      enqueues the uploads of dense features, labels and weights
//	          updates the statistics of rows, gathers their values, pools bags, enqueues the uploads
//	devices   run the steps of the program in order, each over all examples
//	          download loss terms, logits, batch statistics and the gradients of the pooled rows,
//	          as soon as the last of them is computed
//	host      waits for these, checks that loss and statistics are finite, updates rows
//	devices   meanwhile compute and all-reduce the gradients of parameters, update parameters
//
// A device has four streams, for computation, uploads, downloads and gradient sums, and two slots
// for a mini-batch's inputs from the host. So the dense inputs of a mini-batch may be copied while
// the devices still compute the previous one. Infer changes no rows, so the host gathers and pools
// a mini-batch while the devices work on the previous one; each result is delivered one call late.
//
// # One mini-batch, with rows on the devices
//
//	host      enqueues the uploads of dense features, labels, weights, and the rows and bags of the
//	          mini-batch
//	devices   update statistics of rows, gather values, pool bags; run the steps of the program; sum
//	          gradients; update parameters and rows. Rows are updated in a stream of their own;
//	          with one device, as soon as the loss is known to be finite and the gradients of the
//	          pooled bags are computed
//	          then download loss terms, logits, statistics and any overflow of rows together
//	host      waits for the results of the previous mini-batch, checks that its loss, statistics and
//	          rows are finite
//
// So the host never waits for the mini-batch that it has just enqueued, and results are delivered
// one call late. Meanwhile a worker copies the inputs of the next mini-batch of the pass into
// pinned memory (feed.go). Operations that depend on the number of rows of a mini-batch are not
// part of a graph.
//
// # Memory
//
// A device keeps the buffers of a mini-batch in one arena, which is laid out anew for each size of
// mini-batch and grows to the largest one. A buffer of the program has rows for all examples of the
// device. Buffers of scope Tile share the slots of the program, since a device runs one step after
// the other. A second allocation, the state memory, holds parameters, their gradients, the state of
// the optimizer, averages and running statistics. These are up to date on the devices from Import
// to Export. Begin calls Import if that was never done.
//
// # Not finite
//
// A device sets a flag if a loss term or a batch statistic is not finite. Every kernel that updates
// parameters checks the flag, so the devices need not wait for the host. The host finds the same
// value in the downloaded results and returns an error; the engine then stops training until the
// next Import.
//
// # Several devices
//
// Each device has all parameters and a contiguous part of the examples. Sums over examples are
// all-reduced before they are used: gradients, the sums of batch normalization, and a probe that is
// NaN if any device must set its flag. Then all devices take the same step, so that parameters have
// the same bits everywhere.
//
// Gradients are all-reduced in buckets (buckets.go); all but the last one while the devices compute
// the gradients of the next. Models with less than some MiB of parameters have one bucket.
//
// The operations of a device between two all-reduces are a segment (segments.go), which becomes a
// graph from the second mini-batch of a shape on. So the number of calls in which the host enqueues
// a step grows with the number of sums, not of operations. Operations of a graph that share no
// bytes may run concurrently, such as the gradient of a layer's weights and that of its input, so
// steps have their own memory where possible.
//
// # Statistics
//
// Streams count the operations enqueued in them; those of a graph count each time the graph runs.
// Every 31st step of training is measured with events, which are read once the host has waited for
// a later operation anyway: see sample.go.
//
// # Errors
//
// After an error of a device, or of a call that left a step half enqueued, every later call but End
// and Close returns that error.
package cuda
