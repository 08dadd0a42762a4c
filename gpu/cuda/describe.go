//go:build nvidia && linux && amd64

package cuda

// #include "fused.h"
// #include "libraries.h"
import "C"

import (
	"fmt"
	"strings"

	"gorgonia.org/cu"

	"aibox/gpu"
	"aibox/internal/humanize"
)

// Describe says what devices there are, one line each, or why there are none.
func Describe() []string {
	p, err := open()
	if err != nil {
		why := err.Error()
		if e, ok := err.(*gpu.Error); ok {
			why = e.Reason
		}
		return []string{"built with CUDA, but there are no devices: " + why}
	}
	lines := []string{fmt.Sprintf("built with CUDA %s, driver for CUDA %s, %s, %s, %s", version(C.CUDA_VERSION), version(cu.Version()), blasVersion(p.driver), ltVersion(p.driver), ncclVersion(p.driver))}
	for i, d := range p.infos {
		lines = append(lines, fmt.Sprintf("%d: %s, %s, compute capability %d.%d, %d multiprocessors%s",
			i, d.Name, humanize.Bytes(d.MemoryBytes), d.Major, d.Minor, d.Multiprocessors, p.links(i)))
	}
	return lines
}

// links names the links of a device.
func (p *platform) links(i int) string {
	var s strings.Builder
	for j := range p.infos {
		if j != i {
			fmt.Fprintf(&s, ", to %d: %v", j, p.Link(i, j))
		}
	}
	return s.String()
}

func blasVersion(driver int) string {
	if err := cublas.load(driver); err != nil {
		return "no cuBLAS"
	}
	return "cuBLAS " + dotted(C.aibox_blas_version())
}

func ltVersion(driver int) string {
	if cublas.load(driver) != nil || cublasLt.load(driver) != nil {
		return "no cuBLASLt"
	}
	v := C.aibox_lt_version()
	if v < oldestLt {
		return "cuBLASLt " + dotted(v) + " (unused, older than " + dotted(oldestLt) + ")"
	}
	return "cuBLASLt " + dotted(v)
}

// dotted writes a version as NVIDIA's libraries count them.
func dotted(v C.int) string { return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100) }

func ncclVersion(driver int) string {
	var v C.int
	if nccl.load(driver) != nil || C.aibox_nccl_version(&v) != 0 {
		return "no NCCL"
	}
	if v < 10000 { // as it was counted before 2.9
		return fmt.Sprintf("NCCL %d.%d.%d", v/1000, v/100%10, v%100)
	}
	return "NCCL " + dotted(v)
}
