//go:build nvidia && linux

#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define F(name) extern void *slot_##name;
#include "symbols.h"
#undef F

static const struct {
	const char *name;
	void **slot;
} functions[] = {
#define F(name) {#name, &slot_##name},
#include "symbols.h"
#undef F
};

static CUresult succeed(void) { return CUDA_SUCCESS; }
static CUresult absent(void) { return CUDA_ERROR_NOT_SUPPORTED; }

// aibox_not_loaded is what all functions are until the driver is loaded.
__attribute__((visibility("hidden"))) CUresult aibox_not_loaded(void) { return CUDA_ERROR_NOT_INITIALIZED; }

// Package cu calls cuInit before main.
__attribute__((constructor)) static void put_off_cuinit(void) { slot_cuInit = (void *)succeed; }

int aibox_load(char **reason) {
	static int loaded;
	if (!loaded) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		if (library == NULL) {
			const char *why = dlerror();
			*reason = strdup(why != NULL ? why : "dlopen failed");
			return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
		}
		for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
			void *f = dlsym(library, functions[i].name);
			*functions[i].slot = f != NULL ? f : (void *)absent;
		}
		loaded = 1;
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); // as nvidia-smi numbers devices; the driver's default is the fastest one first
	}
	return cuInit(0);
}

const char *aibox_error_name(int result, const char **text) {
	const char *name = NULL;
	*text = NULL;
	if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "CUDA error";
	if (cuGetErrorString(result, text) != CUDA_SUCCESS || *text == NULL) *text = "unknown";
	return name;
}
