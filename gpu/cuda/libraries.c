//go:build nvidia && linux

#include "libraries.h"

#include "calls.h"

#include <string.h>

void *aibox_open(const char *name, char **reason) {
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		const char *why = dlerror();
		*reason = strdup(why != NULL ? why : "dlopen failed");
	}
	return library;
}

static __typeof__(cublasCreate_v2) *create;
static __typeof__(cublasDestroy_v2) *destroy;
static __typeof__(cublasSetStream_v2) *set_stream;
static __typeof__(cublasSetWorkspace_v2) *set_workspace;
static __typeof__(cublasSetMathMode) *set_math_mode;
static __typeof__(cublasSetAtomicsMode) *set_atomics_mode;
static __typeof__(cublasGetProperty) *get_property;
static __typeof__(cublasGemmEx) *gemm;

const char *aibox_blas_load(void *library) {
	FIND(library, create, "cublasCreate_v2");
	FIND(library, destroy, "cublasDestroy_v2");
	FIND(library, set_stream, "cublasSetStream_v2");
	FIND(library, set_workspace, "cublasSetWorkspace_v2");
	FIND(library, set_math_mode, "cublasSetMathMode");
	FIND(library, set_atomics_mode, "cublasSetAtomicsMode");
	FIND(library, get_property, "cublasGetProperty");
	FIND(library, gemm, "cublasGemmEx");
	return NULL;
}

int aibox_blas_version(void) {
	int major = 0, minor = 0, patch = 0;
	get_property(MAJOR_VERSION, &major);
	get_property(MINOR_VERSION, &minor);
	get_property(PATCH_LEVEL, &patch);
	return major * 10000 + minor * 100 + patch;
}

int aibox_blas_create(CUcontext ctx, CUstream stream, uint64_t workspace, size_t bytes, cublasHandle_t *h) {
	CONTEXT(ctx);
	TRY(create(h));
	cublasStatus_t s = set_stream(*h, stream);
	if (s == CUBLAS_STATUS_SUCCESS) s = set_workspace(*h, (void *)(uintptr_t)workspace, bytes); // set_stream has taken it away
	if (s == CUBLAS_STATUS_SUCCESS) s = set_math_mode(*h, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
	if (s == CUBLAS_STATUS_SUCCESS) s = set_atomics_mode(*h, CUBLAS_ATOMICS_NOT_ALLOWED);
	if (s != CUBLAS_STATUS_SUCCESS) {
		destroy(*h);
		*h = NULL;
	}
	return s;
}

int aibox_blas_destroy(cublasHandle_t h) { return destroy(h); }

int aibox_blas_gemm(CUcontext ctx, cublasHandle_t h, const aibox_gemm_t *g) {
	const float one = 1, zero = 0;
	CONTEXT(ctx);
	return gemm(h, g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->m, g->n, g->k, &one,
		(void *)(uintptr_t)g->a, g->type, g->lda, (void *)(uintptr_t)g->b, g->type, g->ldb, &zero,
		(void *)(uintptr_t)g->c, g->result, g->ldc, g->compute, CUBLAS_GEMM_DEFAULT);
}

// The interface of NCCL 2, whose header need not be there to build.
static int (*nccl_get_version)(int *);
static const char *(*nccl_get_error_string)(int);
static int (*nccl_init_all)(void **comms, int n, const int *devices);
static int (*nccl_destroy)(void *comm);
static int (*nccl_abort)(void *comm);
static int (*nccl_start)(void);
static int (*nccl_end)(void);
static int (*nccl_all_reduce)(const void *send, void *receive, size_t count, int type, int operation, void *comm, CUstream stream);

enum { NCCL_SUCCESS = 0, NCCL_FLOAT32 = 7, NCCL_SUM = 0 };

const char *aibox_nccl_load(void *library) {
	FIND(library, nccl_get_version, "ncclGetVersion");
	FIND(library, nccl_get_error_string, "ncclGetErrorString");
	FIND(library, nccl_init_all, "ncclCommInitAll");
	FIND(library, nccl_destroy, "ncclCommDestroy");
	FIND(library, nccl_abort, "ncclCommAbort");
	FIND(library, nccl_start, "ncclGroupStart");
	FIND(library, nccl_end, "ncclGroupEnd");
	FIND(library, nccl_all_reduce, "ncclAllReduce");
	return NULL;
}

int aibox_nccl_version(int *version) { return nccl_get_version(version); }
const char *aibox_nccl_text(int result) { return nccl_get_error_string(result); }
int aibox_nccl_create(CUcontext ctx, int n, const int *devices, void **comms) {
	CONTEXT(ctx);
	return nccl_init_all(comms, n, devices);
}

void aibox_nccl_destroy(CUcontext ctx, int n, void **comms, int abort) {
	if (ctx != NULL) cuCtxSetCurrent(ctx);
	for (int i = 0; i < n; i++)
		if (comms[i] != NULL) (abort ? nccl_abort : nccl_destroy)(comms[i]);
}

int aibox_nccl_all_reduce(int n, void **comms, void **contexts, void **streams, const uint64_t *arrays, size_t count) {
	int r = nccl_start();
	if (r != NCCL_SUCCESS) return r;
	for (int i = 0; i < n; i++) {
		CUresult set = cuCtxSetCurrent(contexts[i]);
		if (set != CUDA_SUCCESS && r == NCCL_SUCCESS) r = -(int)set;
		void *array = (void *)(uintptr_t)arrays[i];
		if (r == NCCL_SUCCESS) r = nccl_all_reduce(array, array, count, NCCL_FLOAT32, NCCL_SUM, comms[i], streams[i]);
	}
	int end = nccl_end();
	return r != NCCL_SUCCESS ? r : end;
}
