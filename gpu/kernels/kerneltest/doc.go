// Package kerneltest holds the kernels of package kernels to what they should compute.
//
// A trial draws operands, enqueues kernels on a device, and compares what they leave in memory with
// the definition, computed in the simplest way. Shapes, strides and offsets are drawn, so that matrices
// have gaps and neighbours. Run runs all trials on one or several kinds of devices from the same random
// numbers: the memory that a trial leaves must be the same on all of them, bit for bit. So the
// twins on emulated devices, the sources on the CPU and a real device are held to one
// definition and to one another.
//
// To add trials, write a file with functions that get a *rig, and name them to add.
package kerneltest
