package kernel

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"aibox/internal/panics"
)

// PeakFMA measures the peak rate, in fused multiply-adds a second, that the given number of threads
// reach at the current level in register-only loops. Matrix products are compared with it.
func PeakFMA(threads int) float64 {
	const steps = 1 << 18
	return fastest(threads, func(int) float64 { return float64(limitFMA(steps)) })
}

// ReadBandwidth measures the bytes a second that the given number of threads read, each repeatedly
// from its own slice of n float32. n selects the cache, or the memory, that is measured.
func ReadBandwidth(threads, n int) float64 {
	n = max(n&^63, 64)
	x := make([][]float32, threads)
	for i := range x {
		x[i] = make([]float32, n)
		Add(x[i], x[i]) // so that the pages are there
	}
	return fastest(threads, func(i int) float64 {
		times := max(1, 1<<20/n)
		for range times {
			limitRead(x[i])
		}
		return float64(4 * n * times)
	})
}

// Work is the minimum work of one operation of a benchmark.
type Work struct {
	Threads int // that do it
	FMAs    int // fused multiply-adds; 0: they are not what bounds it
	Bytes   int // that are read and written; 0: they are not what bounds it
	Memory  int // bytes of memory that they lie in, which say what cache they come from; 0: Bytes
}

// Benchmark is what ReportLimits needs of a testing.B.
type Benchmark interface {
	Elapsed() time.Duration
	ReportMetric(value float64, unit string)
}

// ReportLimits adds to a benchmark that did w n times at the current level the speed and its share
// of the machine's limits: of register-only fused multiply-adds (%peak), and of the read bandwidth
// of the same cache (%bandwidth).
func ReportLimits(b Benchmark, n int, w Work) {
	each := b.Elapsed().Seconds() / float64(n)
	if w.FMAs > 0 {
		peak := limits.of(limitKey{Level(), w.Threads, 0}, func() float64 { return PeakFMA(w.Threads) })
		b.ReportMetric(2e-9*float64(w.FMAs)/each, "GFLOP/s")
		b.ReportMetric(100*float64(w.FMAs)/each/peak, "%peak")
	}
	if w.Bytes > 0 {
		floats := cmp.Or(w.Memory, w.Bytes) / 4 / w.Threads
		bandwidth := limits.of(limitKey{Level(), w.Threads, floats}, func() float64 { return ReadBandwidth(w.Threads, floats) })
		b.ReportMetric(1e-9*float64(w.Bytes)/each, "GB/s")
		b.ReportMetric(100*float64(w.Bytes)/each/bandwidth, "%bandwidth")
	}
}

// limits are the limits that were measured, each once.
var limits limitCache

type limitCache struct {
	mu       sync.Mutex
	measured map[limitKey]float64
}

type limitKey struct {
	level           string
	threads, floats int
}

func (c *limitCache) of(key limitKey, measure func() float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.measured == nil {
		c.measured = map[limitKey]float64{}
	}
	if c.measured[key] == 0 {
		c.measured[key] = measure()
	}
	return c.measured[key]
}

// fastest returns the highest total rate of several attempts of some milliseconds each, so that
// short interruptions do not matter.
func fastest(threads int, work func(thread int) float64) float64 {
	best := 0.0
	for range 20 {
		amounts := make([]float64, threads)
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range amounts {
			wg.Go(func() {
				defer panics.Exit("measuring the processor")
				for time.Since(begin) < 4*time.Millisecond {
					amounts[i] += work(i)
				}
			})
		}
		wg.Wait()
		sum := 0.0
		for _, a := range amounts {
			sum += a
		}
		best = max(best, sum/time.Since(begin).Seconds())
	}
	return best
}

func limitFMAPortable(n int) int {
	var s [4]float32
	for range n {
		for i := range s {
			s[i] = FMA(s[i], 1, 1)
		}
	}
	limitSink.Store(math.Float32bits(Sum(s[:])))
	return n * len(s)
}

func limitReadPortable(x []float32) { limitSink.Store(math.Float32bits(Sum(x))) }

// limitSink keeps the compiler from dropping a loop.
var limitSink atomic.Uint32
