// Package profiled is a gpu.Platform that measures how long each operation takes on the devices of another
// platform: kernels by name, products by shape, copies, fills and sums over devices.
//
// Each operation is enclosed by two events, whose times are read once they are done. To measure
// every operation, a graph is a list of operations, which Run enqueues one by one. Results have the
// same bits. A job is slower, by two events per operation and by the savings of graphs.
//
// The measured time is from when the stream reaches the operation until it is finished. If the
// stream is otherwise idle, this includes the few microseconds of a launch; in a sum, it includes
// waits for the other devices. Operations of several streams run concurrently, so their times may
// add up to more than the elapsed time.
package profiled
