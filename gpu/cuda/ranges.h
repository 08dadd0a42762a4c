// Ranges of time for profilers, by NVTX.

#ifndef AIBOX_RANGES_H
#define AIBOX_RANGES_H

#include <stddef.h>
#include <stdint.h>

// aibox_ranges tells whether a profiler gets ranges.
int aibox_ranges(void);
// aibox_range_start begins a range. Its name has n bytes and need not end with a zero.
uint64_t aibox_range_start(const char *name, size_t n);
void aibox_range_end(uint64_t range);

#endif
