// How the C files of NVIDIA's libraries find functions, and call them.

#ifndef AIBOX_CALLS_H
#define AIBOX_CALLS_H

#include <dlfcn.h>
#include <stddef.h>

// FIND makes the function that loads a library return the name of a symbol that it lacks.
#define FIND(library, variable, symbol) \
	if ((*(void **)&(variable) = dlsym(library, symbol)) == NULL) return symbol

#define CONTEXT(ctx) \
	do { \
		CUresult r = cuCtxSetCurrent(ctx); \
		if (r != CUDA_SUCCESS) return -(int)r; \
	} while (0)
#define TRY(call) \
	do { \
		cublasStatus_t s = (call); \
		if (s != CUBLAS_STATUS_SUCCESS) return s; \
	} while (0)

#endif
