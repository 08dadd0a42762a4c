// Package gputest has Run, the test suite that every gpu.Platform must pass. Each file tests one
// part of the contract of package gpu. Platforms provide an image with the kernels that kernels.go
// describes.
package gputest

import (
	"testing"

	"aibox/gpu"
)

// Subject is a platform to be tested.
type Subject struct {
	Platform gpu.Platform // with at least one device
	Image    gpu.Image    // the kernels of kernels.go
	// Sticky says that after a failure the process may be unable to get a working device again.
	Sticky bool
	// Exact says that a product with an epilogue, or one that rounds, has the same bits as the
	// plain product followed by the epilogue's formulas in float32 and the rounding.
	Exact bool
	// Fuses says that all products can be done with their epilogues, unless the bias is not aligned
	// to 16 bytes, or K is 0.
	Fuses bool
}

// Run tests a platform.
func Run(t *testing.T, s Subject) {
	for _, part := range []struct {
		name string
		test func(*rig)
	}{
		{"Devices", testDevices},
		{"Memory", testMemory},
		{"Copies", testCopies},
		{"Fill", testFill},
		{"Kernels", testKernels},
		{"Refusals", testRefusals},
		{"Order", testOrder},
		{"Events", testEvents},
		{"DoubleBuffer", testDoubleBuffer},
		{"Products", testProducts},
		{"Epilogues", testEpilogues},
		{"AllReduce", testAllReduce},
		{"AllReduceOrder", testAllReduceOrder},
		{"Graphs", testGraphs},
		{"GraphOrder", testGraphOrder},
		{"Broken", testBroken},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(&rig{t, s}) })
	}
}
