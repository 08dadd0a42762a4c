// Package shim runs the kernels' own sources, in CUDA C++, on the CPU, for tests: Images gives
// emulated devices kernels that a process computes, block by block, into which the sources were
// compiled by g++ behind a header with enough of CUDA (cuda.h). So all that emulated devices check
// is checked of the sources too, and whatever is built on package gpu can run on them. So is that several numbers are read or written at once
// only where they lie at a multiple of their size, which a device would refuse: regions lie as far from a multiple of 16 bytes as there.
//
// What it cannot show is what the threads of a block do at the same time, beyond the order in which they
// take turns (host.h), how fast the kernels are, and what nvcc makes of the sources.
package shim
