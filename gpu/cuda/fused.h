// cuBLASLt, which does a product and its epilogue in one operation.

#ifndef AIBOX_FUSED_H
#define AIBOX_FUSED_H

#include "libraries.h"

#include <cublasLt.h>

// aibox_lt_load finds the functions of cuBLASLt. It returns the name of one that is missing.
const char *aibox_lt_load(void *library);
// aibox_lt_version returns the version, 10000*major + 100*minor + patch.
int aibox_lt_version(void);
// The functions below return a cublasStatus_t, or minus a CUresult.
int aibox_lt_create(CUcontext ctx, cublasLtHandle_t *h);
int aibox_lt_destroy(cublasLtHandle_t h);

typedef struct {
	aibox_gemm_t gemm;
	int epilogue;  // a cublasLtEpilogue_t
	uint64_t bias; // 0: none
	uint64_t workspace;
	size_t workspace_bytes;
} aibox_fused_t;

// aibox_plan_t is a kind of product, and the algorithm for it.
typedef struct aibox_plan aibox_plan_t;

// aibox_plan looks for an algorithm for products of the sizes, strides, epilogue and workspace of f, at addresses that are multiples of the same
// powers of two up to 256. If there is none the result is CUBLAS_STATUS_NOT_SUPPORTED.
int aibox_plan(CUcontext ctx, cublasLtHandle_t h, const aibox_fused_t *f, aibox_plan_t **plan);
// aibox_fused does such a product.
int aibox_fused(CUcontext ctx, CUstream stream, cublasLtHandle_t h, aibox_plan_t *plan, const aibox_fused_t *f);
void aibox_plan_free(aibox_plan_t *plan);

#endif
