// Package shim runs the kernels' own sources, in CUDA C++, on the CPU, for tests. Images gives
// emulated devices kernels that are computed by a separate process, a program that g++ compiles
// from the sources and a header with enough of CUDA (host/cuda.h). All checks of emulated devices
// thus apply to the sources too, and everything built on package gpu can run on them.
//
// # What is found
//
// Each access to memory is checked (host/check.h), whatever order threads and blocks run in:
//
//   - races: of two threads of a block with no __syncthreads between, as where threads of a warp are taken to wait for one another, and of two blocks of a launch,
//   - addresses outside of the rows of an argument, writes to what was given to be read, and shared memory that the launch does not ask for,
//   - reads of what nobody has written; of shared memory, where a result depends on it,
//   - a __syncthreads that not all threads of the block come to,
//   - several numbers that are read or written at once but not at a multiple of their size, which a device would refuse: regions lie as far from a multiple of 16 bytes
//     as there,
//   - and integers that overflow, shifts that are too far, and elements that an array does not have.
//
// # What is not
//
// What nvcc makes of the sources, and how fast that is. Of shapes, what no test launches.
package shim
