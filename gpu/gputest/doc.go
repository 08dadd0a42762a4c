// Package gputest has the suite of tests that every gpu.Platform must pass: Run. Each file
// tests one part of what package gpu promises. Platforms bring an image with the kernels that
// kernels.go describes.
package gputest

import (
	"testing"

	"aibox/gpu"
)

// Subject is a platform to be tested.
type Subject struct {
	Platform gpu.Platform // with at least one device
	Image    gpu.Image    // the kernels of kernels.go
	// Sticky says that a failure may leave the process without a device that works, and with no
	// hope to get one.
	Sticky bool
	// Exact says that a product with an epilogue, or one that rounds, has the bits of one without,
	// after which the epilogue's formulas are computed in float32, and the result is rounded.
	Exact bool
	// Fuses says that all products can be done with their epilogues, unless the bias does not begin
	// at a multiple of 16 bytes, or K is 0.
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
