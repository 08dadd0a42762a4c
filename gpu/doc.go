// Package gpu will hold devices, streams, collectives and kernels for stage
// EL+JL on accelerators. Nothing is here yet: training runs on the CPU, and no
// option claims otherwise.
package gpu
