// Package kerneltest holds the kernels of package kernels to what they should compute.
//
// A trial draws operands, enqueues kernels on a device, and compares what they leave in memory with
// the definition, computed in the simplest way. Shapes, strides and offsets are drawn, so that
// matrices have gaps and neighbours. What results overwrite and what lies in the gaps is NaN in
// half of the trials. The definition is exact in float32 where the kernel's arithmetic is that of
// package kernel; other trials hold the same kernels to formulas in float64 (reference.go). Run
// runs all trials on one or several kinds of devices from the same random numbers: the memory that
// a trial leaves must be the same on all of them, bit for bit, where all NaN are equal. So the
// twins on emulated devices, the sources on the CPU and a real device are held to one definition
// and to one another.
//
// To add trials, write a file with functions that get a *rig, and name them to add.
package kerneltest
