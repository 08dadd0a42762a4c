// Package cuda is a gpu.Platform of NVIDIA devices, behind the build tag nvidia (on linux/amd64). Without
// the tag Open returns an error and Describe says so. The tag is not called cuda, since that one makes
// Gorgonia compute on devices by itself.
//
// # Libraries
//
// A program with the tag starts on every machine, also where there is no device and no driver. That
// needs care, since package gorgonia.org/cu links with libcuda.so.1, and calls cuInit
// before main, and ends the process if that fails. So this package defines the driver's functions
// itself (driver_amd64.S): each is a jump into libcuda.so.1, which Open loads. Before that, cuInit
// only says that it succeeded. symbols.h lists the functions.
//
// cu is used for what happens once: devices and their attributes, contexts, memory, streams,
// events. What training does all the time is C of this package (driver.c), because there one call
// sets the context of the thread and enqueues, without allocating; because cu has no captured
// graphs and no portable pinned memory; and because its kernel launches allocate twice. cu's cuBLAS
// is not used, since a program that links with it needs the very version of the library that it was
// built with. cuBLAS (version 13, 12 or 11, not newer than the driver) and NCCL are loaded when
// they are first needed, and so is cuBLASLt, for products with an epilogue. What it has no
// algorithm for, or does not do when it comes to it, is something that Fuses says no to, and so is
// everything where cuBLASLt is missing or too old.
//
// # Devices
//
// Open gives the first device on a physical one its primary context, the only one that NCCL can
// use, and each further one a context of its own. The primary context stays until the process ends,
// though empty when its device is closed: to make one takes long, and NVIDIA's libraries keep what
// they know of it. An error breaks a context with all that is in it. Whether the others of the
// process go on is up to the driver; NVIDIA's documentation says of most failures of kernels that
// only a new process helps. Close of a broken device destroys its context, without which the next
// Open could not work.
//
// Streams do not wait for the default stream. Threads that wait sleep, but for a moment at first:
// the processors have other work. Where a device may wait for others (groups, events of other
// devices), waiting looks for failures of those, too.
//
// # Graphs
//
// The operations of a graph are collected, and captured when all are known. gpu.Order says which
// must wait for which. They are spread over two lanes (lanes.go), streams of the driver of which
// one is the captured one; events make the other one begin and end with it, and order operations in
// between. So the driver's graph is no chain, and while the next product of the backward pass runs,
// so may the gradient of weights. That needs nothing of a driver that those for CUDA 11.4 have not,
// nor of cuBLAS. Options.Chain makes chains.
//
// # Kernels
//
// An image's Code is PTX, or anything else that cuModuleLoadData takes. Its Params say which kinds of
// arguments a kernel has; for PTX, Load compares their number and sizes with the code. Without
// Params, which only PTX may lack, Launch checks no more than number and sizes.
//
// # Determinism
//
// A product uses the workspace of its lane, of which all have the same size, so what else is
// running does not influence which algorithm cuBLAS takes, and neither does the lane. The same
// holds for cuBLASLt, which is asked for one algorithm before all captures, and without a
// measurement. AllReduce is NCCL's with rings, unless NCCL_ALGO says otherwise. Where NCCL is
// missing, or several devices of a group are on one physical device, each device sums up a part of
// the arrays, in the order of the devices, and copies the sum to the others.
package cuda
