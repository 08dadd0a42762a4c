// Package devicerows keeps the rows of passes in the memory of devices and works on them there
// (HBM-PS; AIBox §3; HierPS, appendix C): the counterpart of package hostrows.
//
// # Passes
//
// Rows of up to three passes are on the devices:
//
//	before    has ended; its last rows are being copied to the host
//	current   is trained
//	next      was announced; its rows are being copied to the devices
//
// A row has a place on one of the devices. When the next pass is announced, a plan is made for its
// rows (plan.go). Rows that it shares with the current pass stay in their places; these are found
// at once. The other rows get free places once the rows of the pass before have left, so that all
// devices have equally many. No device needs a hash table: a mini-batch names rows by their number
// in the pass, and the host knows their places.
//
// Lanes (lane.go) copy rows in chunks, through pinned memory, with one stream per device and
// direction. A worker moves rows between pinned memory and the table while the caller trains;
// Progress, which each step calls, only enqueues what is ready. Rows are written to their places,
// and read from there, in the stream in which the device updates rows, so that copies and updates
// are ordered. As in BagPipe (§3.3), rows come early and leave late; unlike there, a lookahead of
// one pass is enough.
//
// Begin waits for rows that have not arrived. Without Announce, or if two passes do not fit the
// memory, passes do not overlap: all rows leave before the next ones come. For a snapshot, CopyToHost
// copies all rows of passes that have ended to the host; if another pass was announced, the rows
// also stay on the devices.
//
// # One mini-batch
//
//	Prepare   host     orders the rows of the mini-batch by device, copies their places and bags into
//	                   pinned memory; on a worker, if possible, while the previous one is trained
//	Send      host     adds what depends on the step, enqueues the uploads
//	Forward   owners   update the statistics of their rows, gather their values
//	          all      copy the values of rows on other devices, pool the bags of their examples
//	          (the network runs)
//	Update    all      copy the gradients of examples on other devices
//	          owners   add up the gradients of their rows, update them
//
// The gradient of a row is summed in the order of its bags in the mini-batch, whichever device has
// their examples. So given the gradients of the bags, a row gets the same bits on any number of
// devices, and the same as with package hostrows. For that, each device gets the gradients of all
// examples. Partial sums over each device's own examples would be less to copy, but would depend on
// how the examples are divided.
//
// A device works on its rows in a separate stream, beside the compute stream of the network. So it
// updates the rows of a mini-batch as soon as the gradients of its bags are known. It also updates
// the statistics and gathers the values for the next mini-batch while it computes the rest of the
// backward pass. Bags are pooled, and the values of rows on other devices copied, in the compute
// stream, which has used their memory before. With one device, bags are pooled in the stream of
// rows if the rest of the backward pass does not use their memory. Before a mini-batch begins, each
// device waits until all devices are done with the previous one, since they copy from its memory.
//
// # Errors
//
// Before anything is copied, memory is reserved for mini-batches (needs.go) and then for rows
// (room.go). The mini-batches of an announced pass get memory only when the pass begins; if there
// is too little then, the passes do not overlap. After an error of a device, Abort ends all passes;
// only some of the updated rows have then reached the host.
package devicerows
