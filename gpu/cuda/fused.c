//go:build nvidia && linux

#include "fused.h"

#include "calls.h"

#include <stdlib.h>

static __typeof__(cublasLtCreate) *create;
static __typeof__(cublasLtDestroy) *destroy;
static __typeof__(cublasLtGetProperty) *get_property;
static __typeof__(cublasLtMatmulDescCreate) *operation_create;
static __typeof__(cublasLtMatmulDescDestroy) *operation_destroy;
static __typeof__(cublasLtMatmulDescSetAttribute) *operation_set;
static __typeof__(cublasLtMatrixLayoutCreate) *layout_create;
static __typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
static __typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
static __typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
static __typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
static __typeof__(cublasLtMatmulAlgoGetHeuristic) *get_heuristic;
static __typeof__(cublasLtMatmul) *matmul;

const char *aibox_lt_load(void *library) {
	FIND(library, create, "cublasLtCreate");
	FIND(library, destroy, "cublasLtDestroy");
	FIND(library, get_property, "cublasLtGetProperty");
	FIND(library, operation_create, "cublasLtMatmulDescCreate");
	FIND(library, operation_destroy, "cublasLtMatmulDescDestroy");
	FIND(library, operation_set, "cublasLtMatmulDescSetAttribute");
	FIND(library, layout_create, "cublasLtMatrixLayoutCreate");
	FIND(library, layout_destroy, "cublasLtMatrixLayoutDestroy");
	FIND(library, preference_create, "cublasLtMatmulPreferenceCreate");
	FIND(library, preference_destroy, "cublasLtMatmulPreferenceDestroy");
	FIND(library, preference_set, "cublasLtMatmulPreferenceSetAttribute");
	FIND(library, get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
	FIND(library, matmul, "cublasLtMatmul");
	return NULL;
}

int aibox_lt_version(void) {
	int major = 0, minor = 0, patch = 0;
	get_property(MAJOR_VERSION, &major);
	get_property(MINOR_VERSION, &minor);
	get_property(PATCH_LEVEL, &patch);
	return major * 10000 + minor * 100 + patch;
}

int aibox_lt_create(CUcontext ctx, cublasLtHandle_t *h) {
	CONTEXT(ctx);
	return create(h);
}

int aibox_lt_destroy(cublasLtHandle_t h) { return destroy(h); }

// The library makes what is opaque here, since its sizes are not those of the header in all versions.
struct aibox_plan {
	cublasLtMatmulDesc_t operation;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algorithm;
};

void aibox_plan_free(aibox_plan_t *p) {
	if (p->operation != NULL) operation_destroy(p->operation);
	if (p->a != NULL) layout_destroy(p->a);
	if (p->b != NULL) layout_destroy(p->b);
	if (p->c != NULL) layout_destroy(p->c);
	free(p);
}

#define SET(attribute, value) TRY(operation_set(p->operation, CUBLASLT_MATMUL_DESC_##attribute, &(value), sizeof(value)))

// place sets the address that belongs to the operation. The choice of an algorithm depends on how it is aligned.
static int place(aibox_plan_t *p, const aibox_fused_t *f) {
	void *bias = (void *)(uintptr_t)f->bias;
	if (bias != NULL) SET(BIAS_POINTER, bias);
	return CUBLAS_STATUS_SUCCESS;
}

static int describe(aibox_plan_t *p, const aibox_fused_t *f) {
	const aibox_gemm_t *g = &f->gemm;
	int32_t trans_a = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, trans_b = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	uint32_t epilogue = f->epilogue;
	TRY(operation_create(&p->operation, g->compute, CUDA_R_32F));
	SET(TRANSA, trans_a);
	SET(TRANSB, trans_b);
	SET(EPILOGUE, epilogue);
	TRY(place(p, f));
	TRY(layout_create(&p->a, g->type, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda));
	TRY(layout_create(&p->b, g->type, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb));
	return layout_create(&p->c, g->result, g->m, g->n, g->ldc);
}

// alignment is the highest power of two, up to 256, that an address is a multiple of.
static uint32_t alignment(uint64_t address) { return (uint32_t)((address | 256) & -(address | 256)); }

#define PREFER(attribute, value) TRY(preference_set(r, CUBLASLT_MATMUL_PREF_##attribute, &(value), sizeof(value)))

static int prefer(cublasLtMatmulPreference_t r, const aibox_fused_t *f) {
	uint64_t workspace = f->workspace_bytes;
	// Partial sums are float32, as cuBLAS has them here, and are added up in a step of its own, whose order cannot depend on time.
	uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	uint32_t a = alignment(f->gemm.a), b = alignment(f->gemm.b), c = alignment(f->gemm.c);
	PREFER(MAX_WORKSPACE_BYTES, workspace);
	PREFER(REDUCTION_SCHEME_MASK, reduction);
	PREFER(MIN_ALIGNMENT_A_BYTES, a);
	PREFER(MIN_ALIGNMENT_B_BYTES, b);
	PREFER(MIN_ALIGNMENT_C_BYTES, c);
	PREFER(MIN_ALIGNMENT_D_BYTES, c);
	return CUBLAS_STATUS_SUCCESS;
}

// choose takes the algorithm that the library says is best, without a trial: trials differ from run to run.
static int choose(cublasLtHandle_t h, aibox_plan_t *p, const aibox_fused_t *f) {
	cublasLtMatmulPreference_t r = NULL;
	cublasLtMatmulHeuristicResult_t best = {0};
	int found = 0;
	TRY(preference_create(&r));
	int s = prefer(r, f);
	if (s == CUBLAS_STATUS_SUCCESS) s = get_heuristic(h, p->operation, p->a, p->b, p->c, p->c, r, 1, &best, &found);
	preference_destroy(r);
	if (s != CUBLAS_STATUS_SUCCESS) return s;
	if (found == 0 || best.workspaceSize > f->workspace_bytes) return CUBLAS_STATUS_NOT_SUPPORTED;
	p->algorithm = best.algo;
	return best.state;
}

int aibox_plan(CUcontext ctx, cublasLtHandle_t h, const aibox_fused_t *f, aibox_plan_t **plan) {
	CONTEXT(ctx);
	aibox_plan_t *p = calloc(1, sizeof *p);
	if (p == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
	int s = describe(p, f);
	if (s == CUBLAS_STATUS_SUCCESS) s = choose(h, p, f);
	if (s != CUBLAS_STATUS_SUCCESS) {
		aibox_plan_free(p);
		return s;
	}
	*plan = p;
	return s;
}

int aibox_fused(CUcontext ctx, CUstream stream, cublasLtHandle_t h, aibox_plan_t *p, const aibox_fused_t *f) {
	const float one = 1, zero = 0;
	void *c = (void *)(uintptr_t)f->gemm.c;
	CONTEXT(ctx);
	TRY(place(p, f));
	return matmul(h, p->operation, &one, (void *)(uintptr_t)f->gemm.a, p->a, (void *)(uintptr_t)f->gemm.b, p->b, &zero, c, p->c, c, p->c,
		&p->algorithm, (void *)(uintptr_t)f->workspace, f->workspace_bytes, stream);
}
