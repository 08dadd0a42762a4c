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
// A row has a place on one of the devices. Of the next pass a plan is made (plan.go): rows that the
// current one shares with it stay in their places, which is found out as soon as it is announced.
// When the rows of the pass before are back, the others get free ones, so that each device has as
// many; no device needs a hash table, since a mini-batch names rows by their number in the pass,
// for which the host knows the place. Lanes (lane.go) copy rows in chunks, through pinned memory,
// and on a stream of their own in each direction. A worker moves rows between that and the table,
// while the caller trains: Progress, which each step calls, only enqueues what is ready. Rows get
// to their places, and are taken from there, in the stream in which the device works on rows, so
// that what is trained is never in doubt. With BagPipe (§3.3) this shares that rows come early and
// leave late; it needs no look ahead further than one pass.
//
// Begin waits for what is missing. Without Announce, or where two passes do not fit the memory,
// passes follow one another: all rows leave, then all rows come. Settle brings all rows of passes
// that have ended to the host, for a snapshot, and leaves them on the devices.
//
// # One mini-batch
//
//	host       orders the rows of the mini-batch by device, and copies their places and bags into pinned memory,
//	           if it can on a worker, while the one before is trained                                           Prepare
//	host       adds what depends on the step, and hands all to the copies up                                    Send
//	owners     bring the statistics of their rows up to date and gather their values                           Forward
//	all        copy the values of the others' rows, and pool the bags of their own examples
//	           (the network runs)
//	all        copy the gradients of the others' examples                                                       Update
//	owners     add up the gradients of their rows, and update them
//
// The gradient of a row is added up in the order of its bags in the mini-batch, whatever device has
// their examples. So for given gradients of the bags a row gets the same bits on any number of
// devices, and those of package hostrows. That is why each device gets the gradients of all
// examples; sums of each device's own examples would be smaller, but depend on how the examples are
// divided.
//
// A device works on its rows in a stream of their own, beside the one in which it computes the
// network. So it updates the rows of a mini-batch as soon as the gradients of its bags are known,
// and collects and gathers those of the next one, while it computes the rest of the backward pass.
// Bags are pooled, and the values of the others' rows copied, in the stream of the network, since
// that has used the memory before; but where there is one device, and the rest of the backward pass
// does not use the memory of pooled bags, they are pooled in that of rows, too. Before a mini-batch
// is begun, each device waits until all are done with the one before, since they copy from its
// memory.
//
// # Errors
//
// Before anything is copied, memory for mini-batches is reserved (needs.go), and then that for rows
// (room.go). The mini-batches of a pass that was announced get theirs only when it begins; where
// there is not enough of it then, the passes follow one another, too. After an error of a device,
// Abort ends all passes: some of the rows of the host have changes, and some have not.
package devicerows
