// Package kernels has the computations of a training step on a CUDA device, except for matrix
// products: for each kind of step, a kernel in CUDA C++ and the method of Set that launches it.
// trainer/ops defines what the steps mean; this package knows nothing about models.
//
// # Sources
//
// Each theme has a Go file, with the launches, and a .cu file of the same name, with the kernels.
// "make kernels" compiles all .cu files to aibox.ptx, which is committed and embedded (Image); a
// test fails when it does not belong to the sources. Package twin has each kernel as a Go function,
// for emulated devices. Package kerneltest has the trials that hold kernels to what they should
// compute; they run on emulated devices with the twins, and on the sources themselves, compiled for
// the CPU (package shim). Package kernelrig runs both in tests of other packages, which compare
// kernels with what the CPU does.
//
// # Numbers
//
// A kernel, its twin and its source on the CPU give the same bits, except for the bits of a NaN.
// Therefore nothing is fused unless the source says fmaf (nvcc gets -fmad=false), exp and similar
// functions are the polynomials of internal/kernel, and every sum has an order that is part of the
// kernel's definition and does not depend on the device. If the order of internal/kernel suits a
// device, it is used: RowSum, RowDot, Interact and all element-wise kernels give the bits of the
// CPU. Sums over examples, and FM, have their own orders.
//
// # Memory
//
// Matrices are strided rows of float32. A kernel's results overlap none of its operands; methods
// that work in place say so. Launches of zero rows do nothing, and sums over them give zeros.
// Kernels that change parameters or running statistics read a flag in device memory, which Finite
// sets if numbers are not finite, and do nothing if it is set. A step that diverged, and all later
// ones, thus leave no trace, without a wait of the host.
//
// Arguments are fixed when a graph is captured. What changes from one step to the next is
// therefore in device memory: the flag, the number of the step that decides what Dropout drops, the constants
// of optimizers (optim.go), and what rows of the table decay and are rounded by (table.go).
package kernels
