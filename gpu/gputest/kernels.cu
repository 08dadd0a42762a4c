// The kernels that kernels.go describes. `make gputest-kernels` makes kernels.ptx of them.

extern "C" __global__ void affine(float *y, const float *x, float a, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void gather(float *out, const float *table, const int *index, int dim, int pitch, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	for (int k = 0; k < dim; k++) out[(long long)i * pitch + k] = table[(long long)index[i] * dim + k];
}

extern "C" __global__ void place(int *out) {
	int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	int i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
	out[i] = i;
}

extern "C" __global__ void arguments(unsigned *out, int a, long long b, float c) {
	out[0] = (unsigned)a;
	out[1] = (unsigned)b;
	out[2] = (unsigned)(b >> 32);
	out[3] = __float_as_uint(c);
}

extern "C" __global__ void trap() { asm volatile("trap;"); }
