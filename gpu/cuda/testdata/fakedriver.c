// A driver, cuBLAS and NCCL that have devices on the CPU, as far as package cuda calls them: for machines
// without a device (fake_test.go). It does what their documentation says, strictly: operations run
// as late as they may, those of a graph in another order each time; addresses must be in memory of the operation's context; a failure breaks
// one context; NCCL takes streams of primary contexts only; a context ends with nothing in it.
// FAKE_DEVICES says how many devices there are; FAKE_LEAKS lets contexts end that are not empty; FAKE_MODE is
// the compute mode of the devices, which another process has if it is not 0; FAKE_INIT is the result of cuInit, and
// FAKE_OPEN that of making a context; with FAKE_STICKY a failure of a kernel stays with the process, as the
// documentation says: it has no context any more that works, and gets none. FAKE_LT is what is wrong with cuBLASLt: it is old, it has
// no algorithm (none, nothing), one that wants more memory than it may have (greedy), or one that fails (fails).

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIE(...) (fprintf(stderr, "fake driver: " __VA_ARGS__), fputc('\n', stderr), abort())
#define MAX 4096

// ---- contexts

struct CUctx_st {
	int device, primary, alive, retained, objects;
	CUresult error;
};

static struct CUctx_st primaries[16];
static __thread CUcontext current;
static int initialized;
static CUresult sticky;

static int setting(const char *name, int otherwise) { const char *n = getenv(name); return n ? atoi(n) : otherwise; }
static int devices(void) { return setting("FAKE_DEVICES", 1); }

static CUresult usable(CUcontext c) {
	if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
	if (sticky) return sticky;
	if (c == NULL) return CUDA_ERROR_INVALID_CONTEXT;
	if (!c->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return c->error;
}
#define CONTEXT \
	CUresult context_ = usable(current); \
	if (context_ != CUDA_SUCCESS) return context_;

static void empty(CUcontext c) {
	if (c->error == CUDA_SUCCESS && !sticky && c->objects != 0 && !getenv("FAKE_LEAKS")) DIE("a context ends with %d things in it", c->objects);
}

static void ends(CUcontext c) {
	empty(c);
	c->alive = 0, c->error = CUDA_SUCCESS, c->objects = 0;
}

static int by_bus; // devices are numbered by their places on the bus, instead of the fastest first, which is the last one there

CUresult cuInit(unsigned f) {
	(void)f;
	const char *order = getenv("CUDA_DEVICE_ORDER");
	initialized = 1, by_bus = order != NULL && !strcmp(order, "PCI_BUS_ID");
	return setting("FAKE_INIT", CUDA_SUCCESS);
}
CUresult cuDriverGetVersion(int *v) { *v = 12040; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult r, const char **s) { (void)r; *s = "CUDA_ERROR"; return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult r, const char **s) { (void)r; *s = "an error of the fake driver"; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { *n = devices(); return initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED; }
CUresult cuDeviceGet(CUdevice *d, int n) { *d = n; return n < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) { snprintf(s, n, "fake device %d", by_bus ? d : devices() - 1 - d); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem(size_t *n, CUdevice d) { (void)d; *n = 1 << 30; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
	(void)d;
	switch (a) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *v = 8; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *v = 4; break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *v = 100 << 10; break;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH: *v = 1 << 10; break; // so that both kinds of copies are tried
	case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *v = setting("FAKE_MODE", CU_COMPUTEMODE_DEFAULT); break;
	default: *v = 0;
	}
	return CUDA_SUCCESS;
}
// FAKE_LINK is what devices are linked by: "PCIe"; "host", by nothing; "one way", of which only the one with the lower number can access the
// other; otherwise NVLink.
static int linked(const char *by) { const char *link = getenv("FAKE_LINK"); return link && !strcmp(link, by); }
static int accesses(CUdevice a, CUdevice b) { return a != b && !linked("host") && !(linked("one way") && a > b); }
CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b) { *can = accesses(a, b); return CUDA_SUCCESS; }
CUresult cuDeviceGetP2PAttribute(int *v, CUdevice_P2PAttribute a, CUdevice x, CUdevice y) {
	*v = accesses(x, y) && !(linked("PCIe") && a == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
	return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext c, unsigned f) { CONTEXT; (void)f; return accesses(current->device, c->device) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED; }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice d, unsigned f) { (void)f; return primaries[d].alive ? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE : CUDA_SUCCESS; }
static CUresult opening(void) { return sticky ? sticky : (CUresult)setting("FAKE_OPEN", CUDA_SUCCESS); }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
	*c = &primaries[d];
	if (opening()) return opening();
	if ((*c)->error) return (*c)->error;
	if (setting("FAKE_MODE", CU_COMPUTEMODE_DEFAULT) != CU_COMPUTEMODE_DEFAULT) return CUDA_ERROR_DEVICE_UNAVAILABLE;
	(*c)->device = d, (*c)->primary = (*c)->alive = 1, (*c)->retained++;
	return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset(CUdevice d) { ends(&primaries[d]); return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease(CUdevice d) {
	if (primaries[d].retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
	empty(&primaries[d]);
	if (--primaries[d].retained == 0 && primaries[d].error == CUDA_SUCCESS) DIE("a primary context ends, and will be made again");
	return CUDA_SUCCESS;
}
#undef cuCtxCreate
CUresult cuCtxCreate_v2(CUcontext *c, unsigned f, CUdevice d) {
	(void)f;
	if (opening()) return opening();
	*c = calloc(1, sizeof **c);
	(*c)->device = d, (*c)->alive = 1;
	current = *c;
	return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *c) { *c = current; current = NULL; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext c) { current = c; return usable(c) == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS; }
CUresult cuCtxDestroy(CUcontext c) { ends(c); if (current == c) current = NULL; return CUDA_SUCCESS; }

// ---- memory

typedef struct {
	char *p;
	size_t n;
	CUcontext c;
	int pinned;
	CUstream users[4]; // of it as workspaces of cuBLAS of 4 MiB
} allocation;
static allocation allocations[MAX * 16];
static int allocated;
static size_t used[16];

static allocation *find(uint64_t p, size_t n) {
	for (int i = 0; i < allocated; i++) {
		allocation *a = &allocations[i];
		if (a->p != NULL && p >= (uint64_t)(uintptr_t)a->p && p + n <= (uint64_t)(uintptr_t)a->p + a->n) return a;
	}
	return NULL;
}

static void *allocate(size_t n, int pinned) {
	void *p = aligned_alloc(256, (n + 255) / 256 * 256);
	if (p == NULL || allocated == MAX * 16) DIE("no memory");
	memset(p, 0xff, n); // NaN
	allocations[allocated++] = (allocation){p, n, current, pinned, {NULL}};
	current->objects++;
	return p;
}

static CUresult release(uint64_t p, int pinned) {
	CONTEXT;
	allocation *a = find(p, 1);
	if (a == NULL || (uint64_t)(uintptr_t)a->p != p || a->pinned != pinned || a->c != current) DIE("free of what was not allocated here");
	if (!pinned) used[current->device] -= a->n;
	free(a->p);
	a->p = NULL;
	current->objects--;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *f, size_t *t) { CONTEXT; *t = 1 << 30; *f = *t - used[current->device]; return CUDA_SUCCESS; }
CUresult cuMemAlloc(CUdeviceptr *p, size_t n) {
	CONTEXT;
	if (n == 0) return CUDA_ERROR_INVALID_VALUE;
	if (n > ((size_t)1 << 30) - used[current->device]) return CUDA_ERROR_OUT_OF_MEMORY;
	used[current->device] += n;
	*p = (CUdeviceptr)(uintptr_t)allocate(n, 0);
	return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) { return release(p, 0); }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned f) {
	CONTEXT;
	if (n == 0 || f != CU_MEMHOSTALLOC_PORTABLE) return CUDA_ERROR_INVALID_VALUE;
	*p = allocate(n, 1);
	return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *p) { return release((uint64_t)(uintptr_t)p, 1); }

// ---- operations

typedef struct operation operation;
struct reduction {
	int n, done;
	CUstream streams[16];
	int at[16];
	float *arrays[16];
	size_t count;
};
struct operation {
	enum { COPY, FILL, KERNEL, HOST, RECORD, WAIT, GEMM, REDUCE, GRAPH } kind;
	uint64_t dst, src, dst_pitch, src_pitch, width, rows;
	CUcontext dst_ctx, src_ctx; // of copies by peers
	int any;                    // the driver finds the contexts
	unsigned word;
	const char *name;
	unsigned shape[6];
	uint64_t params[16];
	CUhostFn host;
	void *data;
	CUevent event;
	CUstream target;
	int at;
	int ta, tb, m, n, k, lda, ldb, ldc, bf16, round;
	float beta;
	uint64_t a, b, c, workspace;
	uint32_t epilogue; // of cuBLASLt; 0: none
	uint64_t bias;
	struct reduction *reduction;
	CUgraphExec graph;
};

// A node of a graph comes behind those that are marked.
typedef struct { operation *o; char *behind; } node;
struct CUgraph_st { node nodes[MAX]; int n, bad, ended; CUstream origin; };
struct CUgraphExec_st { CUgraph g; CUcontext c; int runs; };
// While a stream is captured, tail marks the nodes that its next one comes behind. An event that was recorded then has a copy.
struct CUstream_st { CUcontext c; operation *ops[MAX * 4]; int n, ran, running; CUgraph capture; char *tail; };
struct CUevent_st { CUcontext c; CUstream s; int at; double time; CUgraph capture; char *tail; };
struct CUmod_st { CUcontext c; };
struct CUfunc_st { CUcontext c; char name[32]; int shared; };

static double clock_ms;
static int capturing; // streams
static void until(CUstream s, int at);

static char *at(CUcontext c, uint64_t p, size_t n, int any) {
	allocation *a = find(p, n);
	if (a == NULL || (!a->pinned && !any && a->c != c)) {
		c->error = CUDA_ERROR_ILLEGAL_ADDRESS;
		return NULL;
	}
	return (char *)(uintptr_t)p;
}

static uint16_t to_bf16(float f) { uint32_t w; memcpy(&w, &f, 4); return f != f ? 0x7fc0 : (w + 0x7fff + (w >> 16 & 1)) >> 16; }
static float bf16(uint64_t p) { uint32_t w = (uint32_t)*(uint16_t *)(uintptr_t)p << 16; float f; memcpy(&f, &w, 4); return f; }

// element is op(X)[i, j] of a matrix that lies column by column.
static float element(operation *o, uint64_t x, int t, int ld, int i, int j) {
	size_t k = t ? (size_t)i * ld + j : (size_t)j * ld + i;
	return o->bf16 ? bf16(x + 2 * k) : ((float *)(uintptr_t)x)[k];
}

// epilogue is what cuBLASLt does with each column of a product. As the one of NVIDIA, it makes 0 of NaN.
static void epilogue(CUcontext c, operation *o, float *out, int ld) {
	int relu = o->epilogue & CUBLASLT_EPILOGUE_RELU, add = o->epilogue & CUBLASLT_EPILOGUE_BIAS;
	if (add && !at(c, o->bias, (o->round ? 2 : 4) * (size_t)o->m, 0)) return;
	for (int j = 0; j < o->n; j++)
		for (int i = 0; i < o->m; i++) {
			float *x = out + (size_t)j * ld + i;
			if (add) *x += o->round ? bf16(o->bias + 2 * i) : ((float *)(uintptr_t)o->bias)[i];
			if (relu) *x = *x > 0 ? *x : 0;
		}
}

static void multiply(CUcontext c, operation *o) {
	size_t size = o->bf16 ? 2 : 4;
	int ra = o->ta ? o->k : o->m, ca = o->ta ? o->m : o->k, rb = o->tb ? o->n : o->k, cb = o->tb ? o->k : o->n;
	if (o->lda < ra || o->ldb < rb || o->ldc < o->m) DIE("leading dimension");
	if (!at(c, o->a, (((size_t)ca - 1) * o->lda + ra) * size, 0) || !at(c, o->b, (((size_t)cb - 1) * o->ldb + rb) * size, 0) ||
		!at(c, o->c, (((size_t)o->n - 1) * o->ldc + o->m) * (o->round ? 2 : 4), 0) || !at(c, o->workspace, 4 << 20, 0)) return;
	int ld = o->round ? o->m : o->ldc;
	float *all = o->round ? malloc(sizeof *all * o->m * o->n) : (float *)(uintptr_t)o->c;
	for (int j = 0; j < o->n; j++)
		for (int i = 0; i < o->m; i++) {
			float sum = 0, *out = all + (size_t)j * ld + i;
			for (int q = 0; q < o->k; q++) sum += element(o, o->a, o->ta, o->lda, i, q) * element(o, o->b, o->tb, o->ldb, q, j);
			*out = o->beta == 0 ? sum : sum + o->beta * *out;
		}
	if (o->epilogue) epilogue(c, o, all, ld);
	if (!o->round) return;
	for (int j = 0; j < o->n; j++)
		for (int i = 0; i < o->m; i++) ((uint16_t *)(uintptr_t)o->c)[(size_t)j * o->ldc + i] = to_bf16(all[(size_t)j * ld + i]);
	free(all);
}

#define F(i) ((float *)(uintptr_t)o->params[i])
#define I(i) ((int)o->params[i])
static void kernel(CUcontext c, operation *o) {
	unsigned *s = o->shape;
	int threads = s[0] * s[1] * s[2] * s[3] * s[4] * s[5];
	float a;
	if (!strcmp(o->name, "trap")) {
		c->error = CUDA_ERROR_LAUNCH_FAILED;
		if (getenv("FAKE_STICKY")) sticky = c->error;
	} else if (!strcmp(o->name, "affine")) {
		int n = I(3) < threads ? I(3) : threads;
		memcpy(&a, &o->params[2], 4);
		if (!at(c, o->params[0], 4 * n, 0) || !at(c, o->params[1], 4 * n, 0)) return;
		for (int i = 0; i < n; i++) F(0)[i] = a * F(1)[i] + F(0)[i];
	} else if (!strcmp(o->name, "add")) {
		int n = I(2) < threads ? I(2) : threads;
		if (!at(c, o->params[0], 4 * n, 0) || !at(c, o->params[1], 4 * n, 0)) return;
		for (int i = 0; i < n; i++) F(0)[i] += F(1)[i];
	} else if (!strcmp(o->name, "gather")) {
		for (int i = 0; i < I(5) && i < threads; i++) {
			int row = ((int *)(uintptr_t)o->params[2])[i];
			memcpy(F(0) + i * I(4), F(1) + row * I(3), 4 * I(3));
		}
	} else if (!strcmp(o->name, "place")) {
		if (at(c, o->params[0], 4 * threads, 0))
			for (int i = 0; i < threads; i++) ((int *)F(0))[i] = i;
	} else if (!strcmp(o->name, "arguments")) {
		if (at(c, o->params[0], 16, 0)) {
			((unsigned *)F(0))[0] = o->params[1];
			memcpy((unsigned *)F(0) + 1, &o->params[2], 8);
			((unsigned *)F(0))[3] = o->params[3];
		}
	} else {
		DIE("kernel %s", o->name);
	}
}

static void perform(CUstream s, operation *o);

// run runs the nodes of a graph, of those that may run next the first one, the last one or any, by turns.
static void run(CUstream s, CUgraphExec e) {
	static unsigned random = 1;
	int n = e->g->n, turn = e->runs++ % 4;
	char *done = calloc(1, MAX);
	for (int left = n; left > 0; left--) {
		int ready[MAX], count = 0;
		for (int i = 0; i < n; i++) {
			int may = !done[i];
			for (int j = 0; may && j < n; j++) may = !e->g->nodes[i].behind[j] || done[j];
			if (may) ready[count++] = i;
		}
		if (count == 0) DIE("a graph with a cycle");
		random = random * 1664525 + 1013904223;
		int next = ready[turn == 0 ? count - 1 : turn == 1 ? 0 : (int)(random >> 16) % count];
		perform(s, e->g->nodes[next].o);
		done[next] = 1;
	}
	free(done);
}

static void perform(CUstream s, operation *o) {
	clock_ms += 0.001;
	if (o->kind == GRAPH) {
		run(s, o->graph);
		return;
	}
	if (o->kind == WAIT) {
		if (o->target->c->alive) until(o->target, o->at);
		return;
	}
	if (o->kind == RECORD) o->event->time = clock_ms;
	if (s->c->error != CUDA_SUCCESS || sticky) return; // what is left of a broken context does not run
	switch (o->kind) {
	case COPY:
		for (uint64_t i = 0; i < o->rows; i++) {
			int any = o->any || o->dst_ctx != NULL;
			char *d = at(s->c, o->dst + i * o->dst_pitch, o->width, any), *f = at(s->c, o->src + i * o->src_pitch, o->width, any);
			if (d == NULL || f == NULL) return;
			if (o->dst_ctx && (find(o->dst, 1)->c != o->dst_ctx || find(o->src, 1)->c != o->src_ctx)) DIE("a copy names the wrong contexts");
			memcpy(d, f, o->width);
		}
		break;
	case FILL:
		for (uint64_t i = 0; i < o->rows; i++) {
			unsigned *d = (unsigned *)at(s->c, o->dst + i * o->dst_pitch, 4 * o->width, 0);
			for (uint64_t k = 0; d != NULL && k < o->width; k++) d[k] = o->word;
		}
		break;
	case KERNEL: kernel(s->c, o); break;
	case HOST: o->host(o->data); break;
	case GEMM: multiply(s->c, o); break;
	case REDUCE: {
		struct reduction *r = o->reduction;
		for (int i = 0; i < r->n; i++)
			if (r->streams[i] != s) until(r->streams[i], r->at[i]);
		for (size_t k = 0; !r->done && k < r->count; k++) {
			float sum = 0;
			for (int i = r->n - 1; i >= 0; i--) sum += r->arrays[i][k]; // not the order of the emulation
			for (int i = 0; i < r->n; i++) r->arrays[i][k] = sum;
		}
		r->done = 1;
		break;
	}
	default: break;
	}
}

// until runs the first operations of a stream.
static void until(CUstream s, int at) {
	if (s->running) return; // a reduction, which waits for another stream, has come back
	while (s->ran < at) {
		s->running = 1;
		perform(s, s->ops[s->ran]);
		s->running = 0;
		s->ran++;
	}
}

static CUresult enqueue(CUstream s, operation o) {
	CONTEXT;
	if (s->c != current) return CUDA_ERROR_INVALID_HANDLE;
	operation *copy = malloc(sizeof o);
	*copy = o;
	if (s->capture != NULL) {
		CUgraph g = s->capture;
		if (g->n == MAX) DIE("too many nodes");
		g->nodes[g->n] = (node){copy, s->tail};
		s->tail = calloc(1, MAX);
		s->tail[g->n++] = 1;
		return CUDA_SUCCESS;
	}
	if (s->n == MAX * 4) DIE("too many operations");
	s->ops[s->n++] = copy;
	return CUDA_SUCCESS;
}

static CUstream streams[MAX];
static int made;

static CUresult invalid(CUgraph g, CUresult r) { g->bad = 1; return r; }

CUresult cuStreamCreate(CUstream *s, unsigned f) {
	CONTEXT;
	if (f != CU_STREAM_NON_BLOCKING) DIE("a stream that blocks");
	if (made == MAX) DIE("too many streams");
	*s = streams[made++] = calloc(1, sizeof **s);
	(*s)->c = current;
	current->objects++;
	return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) {
	CONTEXT;
	if (s->capture) DIE("a stream ends while it is captured");
	until(s, s->n);
	current->objects--;
	return current->error;
}
CUresult cuStreamSynchronize(CUstream s) {
	CONTEXT;
	if (s->capture) return invalid(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	until(s, s->n);
	return current->error;
}
CUresult cuStreamQuery(CUstream s) {
	CONTEXT;
	if (s->capture) return invalid(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->ran < s->n) { until(s, s->ran + 1); return current->error ? current->error : CUDA_ERROR_NOT_READY; }
	return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned f) {
	(void)f;
	if (e->capture != NULL) { // the event is in a graph
		CUgraph g = e->capture;
		if (s->capture != NULL && s->capture != g) { g->bad = 1; return invalid(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE); }
		if (g->ended) return CUDA_ERROR_CAPTURED_EVENT;
		if (s->c != current) return CUDA_ERROR_INVALID_HANDLE;
		if (s->capture == NULL) s->capture = g, s->tail = calloc(1, MAX);
		for (int i = 0; i < g->n; i++) s->tail[i] |= e->tail[i];
		return CUDA_SUCCESS;
	}
	if (s->capture != NULL) return invalid(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	if (e->s == NULL) return CUDA_SUCCESS;
	return enqueue(s, (operation){.kind = WAIT, .target = e->s, .at = e->at});
}
CUresult cuEventCreate(CUevent *e, unsigned f) { CONTEXT; (void)f; *e = calloc(1, sizeof **e); (*e)->c = current; current->objects++; return CUDA_SUCCESS; }
CUresult cuEventDestroy(CUevent e) { CONTEXT; if (e->c != current) DIE("event of another context"); current->objects--; return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream s) {
	CONTEXT;
	if (e->c != s->c) return CUDA_ERROR_INVALID_HANDLE;
	if (s->capture != NULL) {
		e->capture = s->capture, e->tail = memcpy(malloc(MAX), s->tail, MAX);
		return CUDA_SUCCESS;
	}
	e->capture = NULL;
	CUresult r = enqueue(s, (operation){.kind = RECORD, .event = e});
	if (r == CUDA_SUCCESS) e->s = s, e->at = s->n;
	return r;
}
CUresult cuEventQuery(CUevent e) {
	CONTEXT;
	if (e->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT;
	if (e->s != NULL && e->s->ran < e->at) { until(e->s, e->s->ran + 1); return current->error ? current->error : CUDA_ERROR_NOT_READY; }
	return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent e) { CONTEXT; if (e->capture != NULL) return CUDA_ERROR_CAPTURED_EVENT; if (e->s != NULL) until(e->s, e->at); return current->error; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
	CONTEXT;
	if (a->s == NULL || b->s == NULL || a->capture || b->capture) return CUDA_ERROR_INVALID_HANDLE;
	if (a->s->ran < a->at || b->s->ran < b->at) return CUDA_ERROR_NOT_READY;
	*ms = b->time - a->time;
	return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) {
	allocation *x = find(d, 1), *y = find(s, 1);
	if (x && y && x->pinned && y->pinned) DIE("a copy in the host makes the host wait");
	return enqueue(st, (operation){.kind = COPY, .dst = d, .src = s, .width = n, .rows = 1, .any = 1});
}
CUresult cuMemcpyPeerAsync(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream st) {
	if (st->capture) return invalid(st->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return enqueue(st, (operation){.kind = COPY, .dst = d, .src = s, .width = n, .rows = 1, .dst_ctx = dc, .src_ctx = sc});
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *p, CUstream st) {
	if (p->srcMemoryType != CU_MEMORYTYPE_UNIFIED || p->dstMemoryType != CU_MEMORYTYPE_UNIFIED || p->srcPitch < p->WidthInBytes ||
		p->dstPitch < p->WidthInBytes || p->srcPitch > 1 << 10 || p->dstPitch > 1 << 10 || p->srcXInBytes || p->dstY) return CUDA_ERROR_INVALID_VALUE;
	return enqueue(st, (operation){.kind = COPY, .dst = p->dstDevice, .src = p->srcDevice, .width = p->WidthInBytes, .rows = p->Height, .dst_pitch = p->dstPitch, .src_pitch = p->srcPitch, .any = 1});
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream st) {
	if (st->capture) return invalid(st->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (p->Depth != 1 || p->srcMemoryType != CU_MEMORYTYPE_DEVICE || p->srcPitch < p->WidthInBytes || p->dstPitch < p->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
	return enqueue(st, (operation){.kind = COPY, .dst = p->dstDevice, .src = p->srcDevice, .width = p->WidthInBytes, .rows = p->Height, .dst_pitch = p->dstPitch, .src_pitch = p->srcPitch, .dst_ctx = p->dstContext, .src_ctx = p->srcContext});
}
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned w, size_t n, CUstream st) { return enqueue(st, (operation){.kind = FILL, .dst = d, .word = w, .width = n, .rows = 1}); }
CUresult cuMemsetD2D32Async(CUdeviceptr d, size_t pitch, unsigned w, size_t n, size_t rows, CUstream st) {
	if (pitch % 4 || pitch < 4 * n || pitch > 1 << 10) return CUDA_ERROR_INVALID_VALUE;
	return enqueue(st, (operation){.kind = FILL, .dst = d, .dst_pitch = pitch, .word = w, .width = n, .rows = rows});
}
CUresult cuLaunchHostFunc(CUstream st, CUhostFn f, void *data) { return enqueue(st, (operation){.kind = HOST, .host = f, .data = data}); }

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, CUjit_option *o, void **v) {
	CONTEXT;
	(void)n, (void)o;
	if (strstr(image, ".version") == NULL) {
		snprintf(v[0], (size_t)(uintptr_t)v[1], "line 1: no version");
		return CUDA_ERROR_INVALID_PTX;
	}
	*m = calloc(1, sizeof **m);
	(*m)->c = current;
	current->objects++;
	return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m) { CONTEXT; if (m->c != current) DIE("module of another context"); current->objects--; return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	CONTEXT;
	*f = calloc(1, sizeof **f);
	(*f)->c = m->c;
	snprintf((*f)->name, sizeof (*f)->name, "%s", name);
	return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
	CONTEXT;
	if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
	f->shared = v;
	return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream st, void **params, void **extra) {
	static const struct { const char *name; int sizes[7]; } kernels[] = {
		{"affine", {8, 8, 4, 4}}, {"gather", {8, 8, 8, 4, 4, 4}}, {"place", {8}}, {"arguments", {8, 4, 8, 4}}, {"trap", {0}}, {"add", {8, 8, 4}},
	};
	operation o = {.kind = KERNEL, .name = f->name, .shape = {gx, gy, gz, bx, by, bz}};
	if (f->c != st->c || extra != NULL || (int)shared > f->shared || gx * gy * gz * bx * by * bz == 0) return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
		for (int i = 0; !strcmp(kernels[k].name, f->name) && kernels[k].sizes[i]; i++) memcpy(&o.params[i], params[i], kernels[k].sizes[i]);
	return enqueue(st, o);
}

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode m) {
	CONTEXT;
	if (m != CU_STREAM_CAPTURE_MODE_RELAXED) DIE("capture mode");
	if (s->capture != NULL) return invalid(s->capture, CUDA_ERROR_ILLEGAL_STATE);
	s->capture = calloc(1, sizeof *s->capture);
	s->capture->origin = s, s->tail = calloc(1, MAX);
	capturing++;
	return CUDA_SUCCESS;
}

// complete makes each node come behind all that come before it, also by way of others. A node has a larger number than those it comes behind.
static void complete(CUgraph g, char *behind) {
	for (int j = g->n - 1; j >= 0; j--)
		for (int k = 0; behind[j] && k < j; k++) behind[k] |= g->nodes[j].behind[k];
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *to) {
	CONTEXT;
	CUgraph g = s->capture;
	if (g == NULL) return CUDA_ERROR_ILLEGAL_STATE;
	if (g->origin != s) return invalid(g, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	CUresult r = g->bad ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
	for (int i = 0; i < g->n; i++) complete(g, g->nodes[i].behind);
	complete(g, s->tail);
	for (int i = 0; i < made; i++) {
		if (streams[i]->capture != g) continue;
		for (int k = 0; k < g->n; k++)
			if (streams[i]->tail[k] && !s->tail[k] && r == CUDA_SUCCESS) r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		streams[i]->capture = NULL;
	}
	for (int i = 0; i < g->n; i++)
		for (int k = 0; k < i; k++) {
			operation *x = g->nodes[i].o, *y = g->nodes[k].o;
			if (x->kind == GEMM && y->kind == GEMM && x->workspace == y->workspace && !g->nodes[i].behind[k]) DIE("two products at a time have one workspace");
		}
	g->ended = 1;
	capturing--;
	*to = r == CUDA_SUCCESS ? g : NULL;
	return r;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long f) {
	CONTEXT;
	(void)f;
	*e = calloc(1, sizeof **e);
	(*e)->g = g, (*e)->c = current;
	current->objects++;
	return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) { (void)g; return CUDA_SUCCESS; } // events still name it
CUresult cuGraphExecDestroy(CUgraphExec e) { CONTEXT; e->c = NULL; current->objects--; return CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
	CONTEXT;
	if (e->c != current || s->c != current || s->capture) return CUDA_ERROR_INVALID_HANDLE;
	return enqueue(s, (operation){.kind = GRAPH, .graph = e});
}

// ---- cuBLAS

struct cublasContext { CUcontext c; CUstream s; uint64_t workspace; int atomics; };

cublasStatus_t cublasCreate_v2(cublasHandle_t *h) {
	if (usable(current)) return CUBLAS_STATUS_NOT_INITIALIZED;
	if (capturing) DIE("a handle of cuBLAS is made while a stream is captured");
	if (((size_t)1 << 30) - used[current->device] < 64 << 20) return CUBLAS_STATUS_NOT_INITIALIZED; // there is no room for its code
	*h = calloc(1, sizeof **h);
	(*h)->c = current, (*h)->atomics = -1;
	current->objects++;
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
	if (h->c != current) DIE("a handle of cuBLAS ends in another context"); // in which it would give its memory back
	h->c->objects--;
	free(h);
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) { h->s = (CUstream)s; h->workspace = 0; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *p, size_t n) {
	if (n < 4 << 20 || (uintptr_t)p % 256) return CUBLAS_STATUS_INVALID_VALUE;
	h->workspace = (uint64_t)(uintptr_t)p;
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t m) { (void)h; return m == 16 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t h, cublasAtomicsMode_t m) { h->atomics = m; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetProperty(libraryPropertyType t, int *v) { *v = t == MAJOR_VERSION ? 12 : 4; return CUBLAS_STATUS_SUCCESS; }
// claim takes note that a stream uses a workspace.
static void claim(uint64_t workspace, CUstream s) {
	allocation *w = find(workspace, 4 << 20);
	if (w == NULL) DIE("a workspace that was not allocated");
	size_t at = workspace - (uint64_t)(uintptr_t)w->p, i = at / (4 << 20);
	if (at % (4 << 20) || i >= 4 || (w->users[i] != NULL && w->users[i] != s)) DIE("two streams have one workspace");
	w->users[i] = s;
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType ta_,
	int lda, const void *b, cudaDataType tb_, int ldb, const void *beta, void *c, cudaDataType tc, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
	int bf = ta_ == CUDA_R_16BF;
	if (ta_ != tb_ || (tc != CUDA_R_32F && !(bf && tc == CUDA_R_16BF)) || *(float *)alpha != 1 || h->workspace == 0 || h->atomics != 0 || algo != CUBLAS_GEMM_DEFAULT || m < 1 || n < 1 || k < 1 ||
		h->c != current || (compute != CUBLAS_COMPUTE_32F && (bf || compute != CUBLAS_COMPUTE_32F_FAST_TF32))) return CUBLAS_STATUS_INVALID_VALUE;
	claim(h->workspace, h->s);
	operation o = {.kind = GEMM, .ta = ta == CUBLAS_OP_T, .tb = tb == CUBLAS_OP_T, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .bf16 = bf, .round = tc == CUDA_R_16BF,
		.beta = *(float *)beta, .a = (uint64_t)(uintptr_t)a, .b = (uint64_t)(uintptr_t)b, .c = (uint64_t)(uintptr_t)c, .workspace = h->workspace};
	return enqueue(h->s, o) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// ---- cuBLASLt

struct cublasLtContext { CUcontext c; };
typedef struct { int compute, scale; int32_t ta, tb; uint32_t epilogue; uint64_t bias; } lt_operation;
typedef struct { int type; uint64_t rows, columns; int64_t ld; } lt_layout;
typedef struct { uint64_t workspace; uint32_t reduction, align[4]; } lt_preference;
// lt_algorithm is what it was chosen for.
typedef struct { uint64_t hash; unsigned char align[5]; } lt_algorithm;
_Static_assert(sizeof(lt_algorithm) <= sizeof(cublasLtMatmulAlgo_t), "it is too large");

static int lt_is(const char *what) { const char *n = getenv("FAKE_LT"); return n != NULL && !strcmp(n, what); }
static cublasStatus_t lt_make(void *opaque, size_t n) {
	if (usable(current)) return CUBLAS_STATUS_NOT_INITIALIZED;
	if (capturing) DIE("cuBLASLt makes something while a stream is captured");
	*(void **)opaque = calloc(1, n);
	current->objects++;
	return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t lt_end(void *opaque) {
	if (opaque == NULL) return CUBLAS_STATUS_INVALID_VALUE;
	current->objects--;
	free(opaque);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) {
	cublasStatus_t s = lt_make(h, sizeof **h);
	if (s == CUBLAS_STATUS_SUCCESS) (*h)->c = current;
	return s;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
	if (h->c != current) DIE("a handle of cuBLASLt ends in another context");
	return lt_end(h);
}
cublasStatus_t cublasLtGetProperty(libraryPropertyType t, int *v) {
	*v = t == MAJOR_VERSION ? 12 : t == MINOR_VERSION ? (lt_is("old") ? 1 : 4) : 2;
	return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale) {
	cublasStatus_t s = lt_make(d, sizeof(lt_operation));
	if (s == CUBLAS_STATUS_SUCCESS) *(lt_operation *)*d = (lt_operation){.compute = compute, .scale = scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
	return s;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return lt_end(d); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void *p, size_t n) {
	lt_operation *o = (lt_operation *)d;
#define ATTRIBUTE(name, field) \
	case name: \
		if (n != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE; \
		memcpy(&field, p, n); \
		return CUBLAS_STATUS_SUCCESS;
	switch (a) {
	ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, o->ta)
	ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, o->tb)
	ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, o->epilogue)
	ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o->bias)
	default: return CUBLAS_STATUS_INVALID_VALUE;
	}
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
	cublasStatus_t s = lt_make(l, sizeof(lt_layout));
	if (s == CUBLAS_STATUS_SUCCESS) *(lt_layout *)*l = (lt_layout){type, rows, columns, ld};
	return s;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return lt_end(l); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *r) {
	cublasStatus_t s = lt_make(r, sizeof(lt_preference));
	if (s == CUBLAS_STATUS_SUCCESS) *(lt_preference *)*r = (lt_preference){.reduction = CUBLASLT_REDUCTION_SCHEME_MASK, .align = {256, 256, 256, 256}};
	return s;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t r) { return lt_end(r); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t r, cublasLtMatmulPreferenceAttributes_t a, const void *p, size_t n) {
	lt_preference *o = (lt_preference *)r;
	switch (a) {
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, o->workspace)
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, o->reduction)
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, o->align[0])
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, o->align[1])
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, o->align[2])
	ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, o->align[3])
	default: return CUBLAS_STATUS_INVALID_VALUE; // those of CUDA 11 for pointers and epilogues are gone in CUDA 12
	}
}

static uint64_t hash(uint64_t h, uint64_t v) { return (h ^ v) * 0x100000001b3; }
static unsigned char log_alignment(uint64_t address) { return __builtin_ctzll(address | 256); }

// lt_check is whether the documentation allows a product. algorithm becomes what it can be done with.
static cublasStatus_t lt_check(const lt_operation *o, const lt_layout *a, const lt_layout *b, const lt_layout *c, const lt_layout *d, lt_algorithm *algorithm) {
	uint64_t m = d->rows, n = d->columns, k = o->ta ? a->rows : a->columns;
	int bias = 0;
	switch (o->epilogue) {
	case CUBLASLT_EPILOGUE_RELU: break;
	case CUBLASLT_EPILOGUE_BIAS: case CUBLASLT_EPILOGUE_RELU_BIAS: bias = 1; break;
	default: DIE("epilogue %u", o->epilogue);
	}
	int bf = a->type == CUDA_R_16BF;
	// The bias has the type of the result.
	if (o->scale != CUDA_R_32F || a->type != b->type || (!bf && a->type != CUDA_R_32F) || (d->type != CUDA_R_32F && (!bf || d->type != CUDA_R_16BF)) ||
		(o->compute != CUBLAS_COMPUTE_32F && (bf || o->compute != CUBLAS_COMPUTE_32F_FAST_TF32))) return CUBLAS_STATUS_NOT_SUPPORTED;
	if (memcmp(c, d, sizeof *c) || m < 1 || n < 1 || k < 1 || a->rows != (o->ta ? k : m) || a->columns != (o->ta ? m : k) || b->rows != (o->tb ? n : k) ||
		b->columns != (o->tb ? k : n) || a->ld < (int64_t)a->rows || b->ld < (int64_t)b->rows || d->ld < (int64_t)m || (o->ta != CUBLAS_OP_N && o->ta != CUBLAS_OP_T) ||
		(o->tb != CUBLAS_OP_N && o->tb != CUBLAS_OP_T)) return CUBLAS_STATUS_INVALID_VALUE;
	if (bias != (o->bias != 0)) return CUBLAS_STATUS_INVALID_VALUE;
	uint64_t h = 0xcbf29ce484222325, all[] = {o->compute, o->ta, o->tb, o->epilogue, a->type, d->type, m, n, k, a->ld, b->ld, d->ld};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) h = hash(h, all[i]);
	*algorithm = (lt_algorithm){.hash = h};
	algorithm->align[4] = bias ? log_alignment(o->bias) : 8;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t o, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t r, int most, cublasLtMatmulHeuristicResult_t results[], int *found) {
	lt_preference *p = (lt_preference *)r;
	lt_algorithm algorithm;
	if (h->c != current || capturing) DIE("cuBLASLt looks for an algorithm in another context, or while a stream is captured");
	if (p->workspace < 4 << 20 || p->reduction & CUBLASLT_REDUCTION_SCHEME_INPLACE || p->reduction & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE) DIE("preferences");
	*found = 0;
	cublasStatus_t s = lt_check((lt_operation *)o, (lt_layout *)a, (lt_layout *)b, (lt_layout *)c, (lt_layout *)d, &algorithm);
	if (s != CUBLAS_STATUS_SUCCESS) return s;
	if (most < 1 || lt_is("none")) return CUBLAS_STATUS_NOT_SUPPORTED;
	if (lt_is("nothing")) return CUBLAS_STATUS_SUCCESS;
	for (int i = 0; i < 4; i++) algorithm.align[i] = log_alignment(p->align[i]);
	memset(&results[0], 0, sizeof results[0]);
	memcpy(&results[0].algo, &algorithm, sizeof algorithm);
	results[0].workspaceSize = lt_is("greedy") ? p->workspace + 1 : 1 << 20;
	results[0].state = CUBLAS_STATUS_SUCCESS;
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t od, const void *alpha, const void *a, cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl,
	const void *beta, const void *c, cublasLtMatrixLayout_t cl, void *d, cublasLtMatrixLayout_t dl, const cublasLtMatmulAlgo_t *chosen, void *workspace, size_t n, cudaStream_t s) {
	lt_operation *o = (lt_operation *)od;
	lt_layout *x = (lt_layout *)al, *y = (lt_layout *)bl, *z = (lt_layout *)dl;
	lt_algorithm algorithm, *of = (lt_algorithm *)chosen;
	cublasStatus_t r = lt_check(o, x, y, (lt_layout *)cl, z, &algorithm);
	if (r != CUBLAS_STATUS_SUCCESS) return r;
	if (of == NULL || of->hash != algorithm.hash || *(float *)alpha != 1 || *(float *)beta != 0 || c != d || n < 1 << 20 || (uintptr_t)workspace % 256 ||
		s->c != current || h->c != current) return CUBLAS_STATUS_INVALID_VALUE;
	if (lt_is("fails")) return CUBLAS_STATUS_NOT_SUPPORTED;
	uint64_t places[] = {(uint64_t)(uintptr_t)a, (uint64_t)(uintptr_t)b, (uint64_t)(uintptr_t)c, (uint64_t)(uintptr_t)d, o->bias};
	for (int i = 0; i < 5; i++)
		if (log_alignment(places[i]) < of->align[i]) DIE("argument %d of a product is not aligned as the algorithm was told", i);
	if (o->bias % 16) DIE("a misaligned address"); // some kernels fail then, which the heuristic does not know
	claim((uint64_t)(uintptr_t)workspace, s);
	operation all = {.kind = GEMM, .ta = o->ta == CUBLAS_OP_T, .tb = o->tb == CUBLAS_OP_T, .m = z->rows, .n = z->columns, .k = o->ta ? x->rows : x->columns, .lda = x->ld, .ldb = y->ld,
		.ldc = z->ld, .bf16 = x->type == CUDA_R_16BF, .round = z->type == CUDA_R_16BF, .a = places[0], .b = places[1], .c = places[3], .workspace = (uint64_t)(uintptr_t)workspace,
		.epilogue = o->epilogue, .bias = o->bias};
	return enqueue(s, all) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

// ---- NCCL

typedef struct { int device; } comm;
static struct reduction *collecting;
static int reductions; // for the test: how many sums NCCL had

int ncclGetVersion(int *v) { *v = 22005; return 0; }
const char *ncclGetErrorString(int r) { (void)r; return "an error of the fake NCCL"; }
int ncclCommInitAll(void **comms, int n, const int *numbers) {
	const char *algo = getenv("NCCL_ALGO");
	if (algo == NULL || strcmp(algo, "Ring")) DIE("NCCL_ALGO");
	if (usable(current)) return 1; // it asks for the device of the context
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < i; j++)
			if (numbers[i] == numbers[j]) return 5;
		comm *c = malloc(sizeof *c);
		c->device = numbers[i], comms[i] = c;
	}
	return 0;
}
int ncclCommDestroy(void *c) { free(c); return 0; }
int ncclCommAbort(void *c) { free(c); return 0; }
int ncclGroupStart(void) { collecting = calloc(1, sizeof *collecting); return 0; }
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation, void *c, CUstream s) {
	struct reduction *r = collecting;
	if (r == NULL || send != receive || type != 7 || operation != 0 || s->c != current || !s->c->primary || s->c->device != ((comm *)c)->device) return 4;
	if (!at(s->c, (uint64_t)(uintptr_t)send, 4 * count, 0)) return 1;
	r->streams[r->n] = s, r->at[r->n] = s->n, r->arrays[r->n] = receive, r->count = count, r->n++;
	return 0;
}
int ncclGroupEnd(void) {
	struct reduction *r = collecting;
	CUcontext before = current;
	for (int i = 0; i < r->n; i++) {
		current = r->streams[i]->c;
		if (enqueue(r->streams[i], (operation){.kind = REDUCE, .reduction = r})) return 1;
	}
	current = before;
	collecting = NULL;
	if (reductions++ == 0) fprintf(stderr, "fake driver: NCCL sums up\n");
	return 0;
}
