// cuBLAS and NCCL, which are loaded when they are first needed.

#ifndef AIBOX_LIBRARIES_H
#define AIBOX_LIBRARIES_H

#include <cublas_v2.h>
#include <cuda.h>
#include <stdint.h>

// aibox_open loads a library; if that fails it returns NULL, and *reason is why; the caller frees it.
void *aibox_open(const char *name, char **reason);

// aibox_blas_load finds the functions of cuBLAS. It returns the name of one that is missing.
const char *aibox_blas_load(void *library);
// aibox_blas_version returns the version, 10000*major + 100*minor + patch.
int aibox_blas_version(void);
// The functions below return a cublasStatus_t, or minus a CUresult.
int aibox_blas_create(CUcontext ctx, CUstream stream, uint64_t workspace, size_t bytes, cublasHandle_t *h);
int aibox_blas_destroy(cublasHandle_t h);

typedef struct {
	int trans_a, trans_b, m, n, k, lda, ldb, ldc; // column by column, as cuBLAS has it
	uint64_t a, b, c;
	int type; // of both sides, a cudaDataType
	int result; // that of c
	int compute; // a cublasComputeType_t
} aibox_gemm_t;

int aibox_blas_gemm(CUcontext ctx, cublasHandle_t h, const aibox_gemm_t *g);

// aibox_nccl_load finds the functions of NCCL. It returns the name of one that is missing.
const char *aibox_nccl_load(void *library);
int aibox_nccl_version(int *version);
const char *aibox_nccl_text(int result);
// The functions below return an ncclResult_t, or minus a CUresult. NCCL asks for the device of the thread's context, and
// afterwards makes the primary context of that device the one of the thread again: so it should be one of its devices.
int aibox_nccl_create(CUcontext ctx, int n, const int *devices, void **comms);
void aibox_nccl_destroy(CUcontext ctx, int n, void **comms, int abort);
int aibox_nccl_all_reduce(int n, void **comms, void **contexts, void **streams, const uint64_t *arrays, size_t count);

#endif
