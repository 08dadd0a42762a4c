// Package twin has a Go function for each kernel of package kernels, which stands for it on
// emulated devices. It computes what the CUDA source computes, with the same operations on the
// same elements in the same order, and gives the same bits; only NaN may be another NaN. Files
// are named like those of the sources.
package twin
