// Package devicerows keeps the rows of a pass in the memory of devices and works on them there (HBM-PS; AIBox §3;
// HierPS, appendix C): the counterpart of package hostrows.
//
// Begin copies the pinned rows of a working set to the devices, Download copies them back. Row r of a pass, as the reader
// has numbered its keys, lies on device r mod D, at place r div D: no hash table is needed.
//
// # One mini-batch
//
//	host       orders the rows of the mini-batch by device, and hands their places and bags to the copies up     Send
//	owners     bring the statistics of their rows up to date and gather their values                           Forward
//	all        copy the values of the others' rows, and pool the bags of their own examples
//	           (the network runs)
//	all        copy the gradients of the others' examples                                                       Update
//	owners     add up the gradients of their rows, and update them
//
// The gradient of a row is added up in the order of its bags in the mini-batch, whatever device has their examples. So for
// given gradients of the bags a row gets the same bits on any number of devices, and those of package hostrows. That
// is why each device gets the gradients of all examples; sums of each device's own examples would be smaller, but
// depend on how the examples are divided.
//
// All that is done on a device is in one stream. Before a mini-batch is begun, each device waits until all others are
// done with the one before, since they copy from its memory.
//
// # Errors
//
// Begin checks for room before it copies anything. Rows of the host do not change before Download; if that
// fails, some of them may have changed.
package devicerows
