//go:build nvidia && linux

#include "ranges.h"

#include <nvtx3/nvToolsExt.h>
#include <string.h>

static nvtxDomainHandle_t domain;

// NVTX looks for a profiler at its first call, by environment variables that profilers set.
__attribute__((constructor)) static void make_domain(void) { domain = nvtxDomainCreateA("aibox"); }

int aibox_ranges(void) { return domain != NULL; }

uint64_t aibox_range_start(const char *name, size_t n) {
	char text[64]; // longer names are cut
	if (n >= sizeof text) n = sizeof text - 1;
	memcpy(text, name, n);
	text[n] = 0;
	nvtxEventAttributes_t e = {0};
	e.version = NVTX_VERSION;
	e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	e.messageType = NVTX_MESSAGE_TYPE_ASCII;
	e.message.ascii = text;
	return nvtxDomainRangeStartEx(domain, &e);
}

void aibox_range_end(uint64_t range) { nvtxDomainRangeEnd(domain, range); }
