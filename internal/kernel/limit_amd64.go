package kernel

import "unsafe"

// limitFMA does about n steps of independent fused multiply-adds and returns how many
// it did.
func limitFMA(n int) int {
	switch level.Load() {
	case levelAVX512:
		limitFMA512(n)
		return n * 24 * 16
	case levelAVX2:
		limitFMA256(n)
		return n * 12 * 8
	}
	return limitFMAPortable(n)
}

func limitRead(x []float32) {
	if level.Load() == levelPortable {
		limitReadPortable(x)
		return
	}
	limitReadAVX2(unsafe.SliceData(x), len(x))
}
