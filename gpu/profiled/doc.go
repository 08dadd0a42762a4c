// Package profiled is a gpu.Platform that measures how long each operation takes on the devices of another
// platform: kernels by name, products by shape, copies, fills and sums over devices.
//
// Each operation lies between two events, whose times are read once they are done. So that every
// operation can be measured, a graph is a list of operations, which Run enqueues one by one.
// Results are the same bits; a job is slower, by two events for each operation and by what graphs
// save.
//
// What is measured is the time from when the stream reaches the operation until it is finished:
// where a stream has nothing else to do, with the few microseconds that a launch takes, and with
// waits for the other devices in a sum. Operations of several streams run at the same time, so
// their times may add up to more than has passed.
package profiled
