//go:build !amd64

package kernel

func limitFMA(n int) int    { return limitFMAPortable(n) }
func limitRead(x []float32) { limitReadPortable(x) }
