// Package kerneltest tests the kernels of package kernels against their definitions.
//
// A trial draws operands, enqueues kernels on a device, and compares the resulting memory with the
// definition, computed in the simplest way. Shapes, strides and offsets are drawn too, so that
// matrices have gaps and neighbours. In half of the trials, memory that results overwrite and
// memory in the gaps is NaN. The definition is exact in float32 if the kernel's arithmetic is that
// of package kernel; other trials compare the same kernels with formulas in float64 (reference.go).
// Run runs all trials on one or several kinds of devices from the same random numbers: a trial must
// leave the same memory on all of them, bit for bit, with all NaN considered equal. The twins on
// emulated devices, the sources on the CPU and a real device are thus tested against one definition
// and against one another.
//
// To add trials, write a file with functions that get a *rig, and pass them to add.
package kerneltest
