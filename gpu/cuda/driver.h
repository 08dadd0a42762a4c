// The driver's functions that training calls all the time. Each sets the context of its thread
// first, since goroutines move between threads, and returns a CUresult.

#ifndef AIBOX_DRIVER_H
#define AIBOX_DRIVER_H

#include <cuda.h>
#include <stdint.h>

// aibox_load loads libcuda.so.1, once, and initializes it. If it cannot be loaded, the result is
// CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, and *reason is why; the caller frees it.
int aibox_load(char **reason);

// aibox_error_name returns the name of a result, and its text in *text.
const char *aibox_error_name(int result, const char **text);

// aibox_pinned allocates memory of the host that all contexts can use.
int aibox_pinned(CUcontext ctx, size_t bytes, void **p);

typedef struct {
	uint64_t dst, src; // addresses, of the device or of pinned memory
	uint64_t dst_pitch, src_pitch, width, rows;
	uint64_t max_pitch; // of the device; rows that are farther apart are copied one by one
	uintptr_t dst_ctx, src_ctx; // by_peers: contexts of the memories, as numbers, so that cgo need not look for pointers
	int by_peers;
} aibox_copy_t;

// aibox_copy copies memory of which at least one side is a device's.
int aibox_copy(CUcontext ctx, CUstream stream, aibox_copy_t *c);

// aibox_host_copy copies between pinned memories. *held is memory that must live as long as a
// graph into which the copy is captured; if held is NULL the copy frees it.
int aibox_host_copy(CUcontext ctx, CUstream stream, aibox_copy_t *c, void **held);

// aibox_fill sets rows of words.
int aibox_fill(CUcontext ctx, CUstream stream, uint64_t dst, uint64_t pitch, uint32_t word, uint64_t words, uint64_t rows, uint64_t max_pitch);

enum { AIBOX_MAX_ARGUMENTS = 128 };

// aibox_launch runs a kernel; each argument is the low bytes of a value.
int aibox_launch(CUcontext ctx, CUstream stream, CUfunction f, const uint32_t shape[7], uint64_t *values, int n);

int aibox_record(CUcontext ctx, CUstream stream, CUevent e);
int aibox_wait_event(CUcontext ctx, CUstream stream, CUevent e);

// aibox_query tells whether a stream is empty or, if it is NULL, an event has happened: CUDA_SUCCESS
// or CUDA_ERROR_NOT_READY.
int aibox_query(CUcontext ctx, CUstream stream, CUevent e);
// aibox_wait waits until then, and sleeps only after some microseconds.
int aibox_wait(CUcontext ctx, CUstream stream, CUevent e, long us);
// aibox_poll waits until then, but no longer than some microseconds.
int aibox_poll(CUcontext ctx, CUstream stream, CUevent e, long us);

int aibox_capture(CUcontext ctx, CUstream stream);
// aibox_captured ends a capture. If exec is not NULL, *exec becomes the graph.
int aibox_captured(CUcontext ctx, CUstream stream, CUgraphExec *exec);
int aibox_run(CUcontext ctx, CUstream stream, CUgraphExec exec);
int aibox_free_graph(CUcontext ctx, CUgraphExec exec);

// aibox_module loads an image that ends with a zero byte; what the compiler says goes to log.
int aibox_module(CUcontext ctx, const void *image, CUmodule *m, char *log, size_t log_bytes);
int aibox_unload(CUcontext ctx, CUmodule m);
int aibox_function(CUcontext ctx, CUmodule m, const char *name, CUfunction *f);
// aibox_shared lets a kernel use so many bytes of dynamic shared memory.
int aibox_shared(CUcontext ctx, CUfunction f, int bytes);

#endif
