// Package cuda is a gpu.Platform of NVIDIA devices, behind the build tag nvidia (on linux/amd64). Without
// the tag Open returns an error and Describe says so. The tag is not called cuda, since that one makes
// Gorgonia compute on devices by itself.
//
// # Libraries
//
// A program with the tag starts on every machine, even without a device and a driver. This needs
// care, because package gorgonia.org/cu links with libcuda.so.1, calls cuInit before main, and ends
// the process if that fails. This package therefore defines the driver's functions itself
// (driver_amd64.S): each is a jump into libcuda.so.1, which Open loads. Before that, cuInit is a
// stub that reports success. symbols.h lists the functions.
//
// cu is used for everything that happens once: devices and their attributes, contexts, memory,
// streams, events. The hot path is C code of this package (driver.c), for three reasons: there one
// call sets the thread's context and enqueues, without allocating; cu has no captured graphs and no
// portable pinned memory; and its kernel launches allocate twice. cu's cuBLAS is not used, because
// a program that links with it needs exactly the version of the library that it was built with.
// cuBLAS (version 13, 12 or 11, not newer than the driver) and NCCL are loaded when they are first
// needed, and so is cuBLASLt, for products with an epilogue. Fuses returns false for products that
// cuBLASLt has no algorithm for or fails to run, and for all products if cuBLASLt is missing or too
// old.
//
// # Devices
//
// Open gives the first logical device on a physical one its primary context, the only one that NCCL
// can use, and each further one a separate context. The primary context stays until the process
// ends, though empty once its device is closed: creating one takes long, and NVIDIA's libraries
// keep state about it. An error breaks a context and everything in it. Whether the process's other
// contexts survive is up to the driver; according to NVIDIA's documentation, most kernel failures
// require a new process. Closing a broken device destroys its context; otherwise the next Open
// could not work.
//
// Streams do not wait for the default stream. Waiting threads poll for a moment and then sleep,
// because the processors have other work. If a device may be waiting for others (groups, events of
// other devices), waiting also checks those for failures.
//
// # Graphs
//
// The operations of a graph are collected, and captured once all are known. gpu.Order gives their
// dependencies. They are spread over two lanes (lanes.go): driver streams of which one is the
// captured stream; events make the other one start and end with it, and order operations in
// between. The driver's graph is therefore not a chain, and a gradient of weights may run
// concurrently with the next product of the backward pass. This needs only features of drivers for
// CUDA 11.4, and nothing special of cuBLAS. Options.Chain makes chains.
//
// # Kernels
//
// An image's Code is PTX, or anything else that cuModuleLoadData takes. Its Params say which kinds of
// arguments a kernel has; for PTX, Load compares their number and sizes with the code. Without
// Params, which only PTX may lack, Launch checks no more than number and sizes.
//
// # Determinism
//
// A product uses the workspace of its lane. All workspaces have the same size, so neither the lane
// nor other running work influences cuBLAS's choice of algorithm. The same holds for cuBLASLt,
// which is asked for one algorithm before any capture, without measuring. AllReduce is NCCL's, with
// rings unless NCCL_ALGO says otherwise. If NCCL is missing, or several devices of a group are on
// one physical device, each device sums one part of the arrays, in the order of the devices, and
// copies the sum to the others.
package cuda
