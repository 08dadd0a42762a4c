//go:build nvidia && linux

#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call) \
	do { \
		CUresult r = (call); \
		if (r != CUDA_SUCCESS) return r; \
	} while (0)

int aibox_pinned(CUcontext ctx, size_t bytes, void **p) {
	TRY(cuCtxSetCurrent(ctx));
	return cuMemHostAlloc(p, bytes, CU_MEMHOSTALLOC_PORTABLE);
}

static CUresult copy_row(CUstream stream, aibox_copy_t *c, uint64_t row, uint64_t bytes) {
	CUdeviceptr dst = c->dst + row * c->dst_pitch, src = c->src + row * c->src_pitch;
	if (c->by_peers) return cuMemcpyPeerAsync(dst, (CUcontext)c->dst_ctx, src, (CUcontext)c->src_ctx, bytes, stream);
	return cuMemcpyAsync(dst, src, bytes, stream);
}

int aibox_copy(CUcontext ctx, CUstream stream, aibox_copy_t *c) {
	TRY(cuCtxSetCurrent(ctx));
	if (c->rows == 1 || (c->dst_pitch == c->width && c->src_pitch == c->width)) return copy_row(stream, c, 0, c->rows * c->width);
	if (c->dst_pitch > c->max_pitch || c->src_pitch > c->max_pitch) {
		for (uint64_t i = 0; i < c->rows; i++) TRY(copy_row(stream, c, i, c->width));
		return CUDA_SUCCESS;
	}
	if (c->by_peers) {
		CUDA_MEMCPY3D_PEER p;
		memset(&p, 0, sizeof p);
		p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_DEVICE;
		p.srcDevice = c->src, p.srcContext = (CUcontext)c->src_ctx, p.srcPitch = c->src_pitch, p.srcHeight = c->rows;
		p.dstDevice = c->dst, p.dstContext = (CUcontext)c->dst_ctx, p.dstPitch = c->dst_pitch, p.dstHeight = c->rows;
		p.WidthInBytes = c->width, p.Height = c->rows, p.Depth = 1;
		return cuMemcpy3DPeerAsync(&p, stream);
	}
	CUDA_MEMCPY2D p;
	memset(&p, 0, sizeof p);
	p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	p.srcDevice = c->src, p.srcPitch = c->src_pitch;
	p.dstDevice = c->dst, p.dstPitch = c->dst_pitch;
	p.WidthInBytes = c->width, p.Height = c->rows;
	return cuMemcpy2DAsync(&p, stream);
}

typedef struct {
	aibox_copy_t copy;
	int once;
} host_copy;

static void CUDA_CB do_host_copy(void *data) {
	host_copy *h = data;
	aibox_copy_t *c = &h->copy;
	for (uint64_t i = 0; i < c->rows; i++)
		memcpy((char *)(uintptr_t)c->dst + i * c->dst_pitch, (char *)(uintptr_t)c->src + i * c->src_pitch, c->width);
	if (h->once) free(h);
}

int aibox_host_copy(CUcontext ctx, CUstream stream, aibox_copy_t *c, void **held) {
	TRY(cuCtxSetCurrent(ctx));
	host_copy *h = malloc(sizeof *h);
	if (h == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
	h->copy = *c;
	h->once = held == NULL;
	CUresult r = cuLaunchHostFunc(stream, do_host_copy, h);
	if (r != CUDA_SUCCESS) {
		free(h);
		return r;
	}
	if (held != NULL) *held = h;
	return CUDA_SUCCESS;
}

int aibox_fill(CUcontext ctx, CUstream stream, uint64_t dst, uint64_t pitch, uint32_t word, uint64_t words, uint64_t rows, uint64_t max_pitch) {
	TRY(cuCtxSetCurrent(ctx));
	if (rows == 1 || pitch == 4 * words) return cuMemsetD32Async(dst, word, rows * words, stream);
	if (pitch <= max_pitch) return cuMemsetD2D32Async(dst, pitch, word, words, rows, stream);
	for (uint64_t i = 0; i < rows; i++) TRY(cuMemsetD32Async(dst + i * pitch, word, words, stream));
	return CUDA_SUCCESS;
}

int aibox_launch(CUcontext ctx, CUstream stream, CUfunction f, const uint32_t s[7], uint64_t *values, int n) {
	void *params[AIBOX_MAX_ARGUMENTS];
	for (int i = 0; i < n; i++) params[i] = &values[i];
	TRY(cuCtxSetCurrent(ctx));
	return cuLaunchKernel(f, s[0], s[1], s[2], s[3], s[4], s[5], s[6], stream, params, NULL);
}

int aibox_record(CUcontext ctx, CUstream stream, CUevent e) {
	TRY(cuCtxSetCurrent(ctx));
	return cuEventRecord(e, stream);
}

int aibox_wait_event(CUcontext ctx, CUstream stream, CUevent e) {
	TRY(cuCtxSetCurrent(ctx));
	return cuStreamWaitEvent(stream, e, 0);
}

int aibox_query(CUcontext ctx, CUstream stream, CUevent e) {
	TRY(cuCtxSetCurrent(ctx));
	return stream != NULL ? cuStreamQuery(stream) : cuEventQuery(e);
}

static long now_us(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

int aibox_wait(CUcontext ctx, CUstream stream, CUevent e, long us) {
	for (long end = now_us() + us; now_us() < end;) {
		CUresult r = aibox_query(ctx, stream, e);
		if (r != CUDA_ERROR_NOT_READY) return r;
	}
	TRY(cuCtxSetCurrent(ctx));
	return stream != NULL ? cuStreamSynchronize(stream) : cuEventSynchronize(e);
}

int aibox_poll(CUcontext ctx, CUstream stream, CUevent e, long us) {
	const struct timespec pause = {0, 20000};
	for (long start = now_us();;) {
		CUresult r = aibox_query(ctx, stream, e);
		long passed = now_us() - start;
		if (r != CUDA_ERROR_NOT_READY || passed > us) return r;
		if (passed > 50) nanosleep(&pause, NULL);
	}
}

int aibox_capture(CUcontext ctx, CUstream stream) {
	TRY(cuCtxSetCurrent(ctx));
	// Other threads, and this one, may go on with other streams meanwhile.
	return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
}

int aibox_captured(CUcontext ctx, CUstream stream, CUgraphExec *exec) {
	CUgraph graph = NULL;
	TRY(cuCtxSetCurrent(ctx));
	CUresult r = cuStreamEndCapture(stream, &graph);
	if (r == CUDA_SUCCESS && exec != NULL) r = cuGraphInstantiateWithFlags(exec, graph, 0);
	if (graph != NULL) cuGraphDestroy(graph);
	return r;
}

int aibox_run(CUcontext ctx, CUstream stream, CUgraphExec exec) {
	TRY(cuCtxSetCurrent(ctx));
	return cuGraphLaunch(exec, stream);
}

int aibox_free_graph(CUcontext ctx, CUgraphExec exec) {
	TRY(cuCtxSetCurrent(ctx));
	return cuGraphExecDestroy(exec);
}

int aibox_module(CUcontext ctx, const void *image, CUmodule *m, char *log, size_t log_bytes) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)log_bytes};
	TRY(cuCtxSetCurrent(ctx));
	return cuModuleLoadDataEx(m, image, 2, options, values);
}

int aibox_unload(CUcontext ctx, CUmodule m) {
	TRY(cuCtxSetCurrent(ctx));
	return cuModuleUnload(m);
}

int aibox_function(CUcontext ctx, CUmodule m, const char *name, CUfunction *f) {
	TRY(cuCtxSetCurrent(ctx));
	return cuModuleGetFunction(f, m, name);
}

int aibox_shared(CUcontext ctx, CUfunction f, int bytes) {
	TRY(cuCtxSetCurrent(ctx));
	return cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}
