// A profiler as NVTX loads one by NVTX_INJECTION64_PATH. It writes the ranges that begin and end, one line each, into the
// file that FAKE_PROFILE names.

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static nvtxRangeId_t ranges;

static nvtxDomainHandle_t NVTX_API create(const char *name) {
	fprintf(out, "domain %s\n", name);
	return (nvtxDomainHandle_t)&out;
}

static nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *e) {
	if (domain != (nvtxDomainHandle_t)&out || e->version != NVTX_VERSION || e->messageType != NVTX_MESSAGE_TYPE_ASCII) abort();
	fprintf(out, "start %s\n", e->message.ascii);
	return ++ranges;
}

static void NVTX_API end(nvtxDomainHandle_t domain, nvtxRangeId_t range) {
	if (domain != (nvtxDomainHandle_t)&out) abort();
	fprintf(out, "end %d\n", (int)range);
	fflush(out);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
	const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable table;
	unsigned size;
	out = fopen(getenv("FAKE_PROFILE"), "w");
	if (out == NULL || callbacks == NULL || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
	*table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
	*table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
	*table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
	return 1;
}
