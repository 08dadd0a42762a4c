// Package cuda is the engine that runs a network on the devices of a gpu.Platform. The rows of a
// pass stay in the memory of the host, as in AIBox, where the host works on them and pools them
// (package hostrows), or they are on the devices (package devicerows). The devices do all the rest
// with the kernels of package kernels.
//
// # One mini-batch, with rows on the host
//
//	host      dense features, labels, weights are handed to the copies up
//	          statistics of rows; their values are gathered, bags pooled, and handed to the copies
//	devices   the steps of the program, in their order, each over all examples
//	          loss terms, logits, batch statistics and the gradient of the pooled rows go down,
//	          as soon as the last of them is computed
//	host      waits for these; loss and statistics are finite; rows are updated
//	devices   meanwhile: gradients of parameters and their sums over the devices, update of parameters
//
// A device has a stream for each of computing, copies up, copies down and sums of gradients, and
// two slots for what a mini-batch needs from the host. So the dense inputs of a mini-batch may be
// copied while the devices still compute the one before, and with Infer, which changes no rows, the
// host gathers and pools a mini-batch while the devices work on the one before: its result is
// delivered one call late.
//
// # One mini-batch, with rows on the devices
//
//	host      dense features, labels, weights, which rows the mini-batch has and in which bags, are handed to the copies up
//	devices   statistics and values of rows, pooled bags; the steps of the program; gradients are summed, parameters
//	          and rows are updated; the rows in a stream of their own, as soon as the loss is known to be finite and the gradient of the
//	          pooled bags is there, if there is one device
//	          loss terms, logits, statistics, and what the update of rows has found go down together, behind that
//	host      waits for the results of the mini-batch before: its loss, statistics and rows are finite
//
// So the host never waits for the mini-batch that it has just handed over, and results are one call
// late. Meanwhile a worker copies what the next mini-batch of the pass needs into pinned memory
// (feed.go). What depends on the number of rows of a mini-batch is not part of a graph.
//
// # Memory
//
// All that a device holds of a mini-batch is one arena, laid out anew for each size of
// mini-batches: a buffer of the program has rows for all examples of the device, and those of scope
// Tile share the slots of the program, since a device runs one step after the other. It grows to
// the largest mini-batch. Parameters, their gradients, the state of the optimizer, averages and
// running statistics are another piece. They are up to date on the devices from Import to Export.
// Begin imports where that was never done.
//
// # Not finite
//
// A device has a flag that it sets if a loss term or a batch statistic is not finite, and which all that
// updates parameters looks at. So the devices need not wait for the host, which finds
// the same in what it gets and says so. Until the next Import the engine then trains no more.
//
// # Several devices
//
// Each device has a contiguous part of the examples, and all parameters. What is summed over
// examples is added up over the devices before it is used: gradients, the sums of batch
// normalization, and a number that is not finite if some device's flag is to be set. Then each
// takes the same step, so parameters are the same bits everywhere.
//
// Gradients are added up in buckets (buckets.go), all but the last one while the devices compute
// the next. Models with less than some MiB of parameters have one.
//
// What a device does between two sums is a segment of operations (segments.go), and a graph from
// the second mini-batch of a shape on. So what the host enqueues in a step grows with the number of
// sums and not with that of operations. Operations of a graph that do not use the same bytes may
// run side by side, such as a gradient of weights and the gradient that goes on to the layer
// before: so steps have their own memory where they can.
//
// # Statistics
//
// Streams count what is enqueued, graphs each time that they run. Every 31st step of training is
// measured with events, which are read when the host has waited for them anyway: see sample.go.
//
// # Errors
//
// After an error of a device, or of a call that left a step half enqueued, every later call but End and Close
// returns it.
package cuda
