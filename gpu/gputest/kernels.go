package gputest

// The kernels of the image, as CUDA C++ declares them. Launches have one dimension, except for
// those of "place".
//
//	// y[i] = a*x[i] + y[i] for i < n; the product is rounded by itself or not
//	affine(float *y /* update */, const float *x, float a, int n)
//
//	// out[i] = table[index[i]], rows of dim numbers, for i < n; out has rows pitch numbers apart
//	gather(float *out /* write */, const float *table, const int *index, int dim, int pitch, int n)
//
//	// out[i] = i, where i is the number of the thread: those of a block follow one another, and
//	// so do the blocks, both with dimension X first and Z last
//	place(int *out /* write */)
//
//	// out[0] = (unsigned)a, out[1] = (unsigned)b, out[2] = b >> 32, out[3] = the bits of c; one thread
//	arguments(unsigned *out /* write */, int a, long long b, float c)
//
//	// breaks the device (an instruction such as trap)
//	trap()
const (
	kernelAffine    = "affine"
	kernelGather    = "gather"
	kernelPlace     = "place"
	kernelArguments = "arguments"
	kernelTrap      = "trap"
)
